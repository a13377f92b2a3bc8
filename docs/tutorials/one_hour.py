# %% [markdown]
# # One hour on real data
# From somebody else's messy CSV in a pandas DataFrame to a fine-tuned model behind a web address, with the table and the figure for the paper on the
# way. Needs the extra `text`, and `pandas`, `fastapi` and `uvicorn` ([install](index.md#install)).
#
# ## The file
# CREHate (Lee et al. 2024, CC BY-SA 4.0): people of five countries said of posts whether they are hate speech. The posts are offensive; this page
# prints none of them. The file is read from the folder that `DISSENSUS_DATA` names, or else from the authors' repository. Nothing
# in it was changed: the mess below is its own.

# %%
import os

import pandas as pd

import dissensus as dis

data = os.environ.get("DISSENSUS_DATA")
official = "https://raw.githubusercontent.com/nlee0212/CREHate/c4cd7117ef67883674e263b9e41b15ec2b644502/data"
folder = f"{data}/crehate" if data else official
rows = pd.read_csv(f"{folder}/CREHate_raw_annotations.csv")
posts = pd.concat([pd.read_csv(f"{folder}/CREHate_{part}.csv") for part in ("SBIC", "CP")])
print(rows[["ID", "annotator_id", "nationality", "ethnicity", "annotation"]].head(3))

# %% [markdown]
# ## What is wrong with it?
# A CSV of votes has one row for each vote. `read_votes` finds out which column is what, and refuses what it would have to guess:

# %%
try:
    dis.read_votes(rows)
except dis.InputError as refused:
    print(refused)

# %% [markdown]
# One person judged some posts up to three times, now this way, now that. The first answer counts.
#
# Three more things only a look at the file tells. *Codes*: `annotation` is 0, 1 or 2, and nothing says what 2 is. The authors' own labels count 0 and 1 alone,
# and so do we. *Deleted posts*: a text that reads "[ removed ]" is nothing to learn from. *Free text*: ethnicity is a list to choose from plus whatever
# people typed, each spelling another value.

# %%
print(rows["annotation"].value_counts().to_dict())
spellings = sorted(rows["ethnicity"].dropna().unique())
print(len(spellings), "spellings, among them", [each for each in spellings if "mixed" in each.lower()][:5])
removed = posts["Text"].str.contains(r"\[ ?(?:removed|deleted) ?\]", case=False)
print(posts.loc[removed, "ID"].tolist(), "removed")

# %%
posts = posts[~removed]
rows = rows[rows["ID"].isin(posts["ID"])].copy()
rows["label"] = rows["annotation"].map({0: "not hate", 1: "hate"})  # 2 becomes NaN: no vote
typed = rows["ethnicity"].str.lower().str.strip().str.removeprefix("other")
rows["ethnicity"] = typed.where(typed.isna() | typed.isin(["white", "asian", "black"]), "other")

# %% [markdown]
# To keep this page to a minute on one core, it goes on with 400 posts of at most 15 words. Leave this cell out to use them all.

# %%
short = posts[posts["Text"].str.split().str.len() <= 15]
posts = short.sample(400, random_state=0)
rows = rows[rows["ID"].isin(posts["ID"])]

# %%
votes = dis.read_votes(rows, label="label", missing=[""], duplicates="first", attributes=["nationality", "ethnicity"])
print(*votes.notes, sep="\n")

# %% [markdown]
# `votes.notes` is what to copy into the paper's data section: what was read as what, and what was left out.
#
# ## Do people agree?

# %%
print(dis.inspect(votes, resamples=200))

# %% [markdown]
# ## Soft labels
# The share of people who chose each class, for each post: the *label distribution*, or soft label. If people agreed, only the two outer bars would be
# there; a majority vote pretends that they are.

# %% alt="A histogram of posts by the share of people who call them hate speech, from 0 to 1."
import altair as alt

labels = dis.label(votes)
shares = pd.DataFrame(labels.probabilities, columns=labels.classes)
alt.Chart(shares, width=420, height=160).mark_bar().encode(
    alt.X("hate", bin=alt.Bin(step=0.2), title="share of people who say hate"), alt.Y("count()", title="posts")
)

# %% [markdown]
# ## Fine-tune
# A study is a small file. This one fine-tunes all-MiniLM-L6-v2 twice on the same posts: on majority labels, as is usual, and on soft labels. Where there
# is a network connection, `hf:roberta-base` is a stronger choice; for a paper, give it `seeds = 5` and a GPU.

# %%
dis.write_votes(votes, "votes.csv")
posts.rename(columns={"ID": "item", "Text": "text"})[["item", "text"]].to_csv("texts.csv", index=False)

study = """
name = "hate-speech"
question = "Does it help to show the model every vote?"
[dataset]
votes = "votes.csv"
texts = "texts.csv"
[splits]
train = 0.5
validation = 0.1
test = 0.4
[grid]
deliveries = ["majority", "soft"]
models = ["hf:minilm"]
seeds = 1
[training]
regime = "early-stopping"
optimiser = "adamw"
learning_rate = 2e-4
batch_size = 32
epochs = 4
schedule = "linear"
"""
with open("study.toml", "w", encoding="utf-8") as file:
    file.write(study)
scored = dis.run("study.toml", engine="loop")
scored

# %% [markdown]
# The first line says which model is closest to people: it is *significantly better* than the other where the interval of the difference leaves 0
# out. The second says what it is *worth in people*: how many people's votes on a post would forecast the other people's votes as well as the model
# does. The third names the simple baseline that does as well, if there is one; with few posts and one random seed there often is.
#
# ## Report, table and figure
# `dis.report` writes one page that opens anywhere, and beside it a folder with every table as CSV, Markdown and LaTeX and every figure as SVG, PNG and
# PDF. Figures called `-column.pdf` are as wide as a column of a paper. (The page shows contested posts, so it is not on this site.)

# %%
from pathlib import Path

dis.report(scored, "out/report.html")
print(*sorted(file.name for file in Path("out/report-files").glob("*-column.pdf")), sep="\n")
print(Path("out/report-files/comparison-all.tex").read_text())

# %% [markdown]
# The figure for the paper is `dots-column.pdf`, and in a notebook:

# %% alt="The people ruler: the score of 0 and more people's votes on a post, and where each model's score meets it."
dis.plot.people_ruler(scored.evaluation)

# %% [markdown]
# ## Serve it
# A bundle is a folder that predicts on any machine, without the votes. Ten lines of FastAPI put it on the web:

# %%
from dissensus_train.bundles import export_bundle

export_bundle(scored, "model", licence="CC-BY-SA-4.0")
server = """
from fastapi import FastAPI

import dissensus as dis

model = dis.load_model("model")
app = FastAPI()


@app.post("/predict")
def predict(texts: list[str]) -> list[dict[str, float]]:
    return [dict(zip(model.classes, row)) for row in model.predict_proba(texts).tolist()]
"""
with open("serve.py", "w", encoding="utf-8") as file:
    file.write(server)

# %% [markdown]
# In a terminal: `uvicorn serve:app`. Here it is started, asked and stopped:

# %%
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

running = subprocess.Popen([sys.executable, "-m", "uvicorn", "serve:app", "--port", "8765", "--log-level", "error"])
texts = ["I prefer chicken katsu curry.", "They all deserve to be thrown out."]
asked = json.dumps(texts).encode()
request = urllib.request.Request("http://127.0.0.1:8765/predict", asked, {"Content-Type": "application/json"})
for _ in range(600):  # until it has loaded the model
    try:
        with urllib.request.urlopen(request) as answer:
            answered = json.load(answer)
        break
    except urllib.error.URLError:
        time.sleep(0.2)
running.terminate()
running.wait()
for text, chances in zip(texts, answered):
    print(text, {name: round(chance, 2) for name, chance in chances.items()})

# %% [markdown]
# Next: [annotators as people](../people.md) asks whether the five countries answer alike, [evaluation](../evaluation.md) explains every number, and
# [models to deploy](../bundles.md) says how to notice that a deployed model grows old.
