# %% [markdown]
# # Collecting with Prolific
# Items, and no votes yet. Set a project up, rehearse it with bots, recruit on Prolific, export, and label. Needs the extras `collect` and `prolific`
# ([install](index.md#install)).
#
# ## A project is one file
# A table of texts, one row per item. `collect init` looks at it and writes `collect.toml`, in which every setting stands with its
# default and a remark.

# %%
import csv

reviews = ["The soup was cold.", "Lovely people.", "It was a meal.", "Slow but worth it."]
with open("reviews.csv", "w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows([("item", "text"), *((f"review-{n}", text) for n, text in enumerate(reviews * 2))])

# %%
# !dissensus collect init reviews --texts reviews.csv --classes bad,mixed,good -k 3 --layout single-choice --recruitment prolific

# %% [markdown]
# ## What to fill in for Prolific
# Open `collect.toml`. Under `[texts]` write the consent and the instructions; under `[cost]` what you pay by the hour and how long an item
# takes. `[recruitment] codes` holds a completion code for each way a session can end: create the same codes in your Prolific study,
# so that people who do not consent, or whose browser fails, are not counted as finished. In Prolific, the study's link is
# your address with its three placeholders:
#
# ```text
# https://YOUR-ADDRESS/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}
# ```
#
# ## Rehearse it
# Bots go through the real server on a copy of the project. Real votes are not touched.

# %%
# !dissensus collect simulate reviews -o rehearsal

# %% [markdown]
# ## Serve, watch, export
# `dissensus collect serve reviews` prints the annotators' link and a link for you that works once. Every item gets exactly three
# votes, whoever leaves, reloads, answers twice or is excluded later. What is exported is pseudonymous. Here it is the rehearsal's, so **these votes are
# bots'**:

# %%
# !dissensus collect export rehearsal -o out

# %%
import dissensus as dis

votes = dis.read_votes("out/votes.parquet")
labels = dis.label(votes, "yes-only")
for item, shares in zip(labels.items[:4], labels.probabilities):
    print(item, dict(zip(labels.classes, shares.round(2).tolist())))

# %% [markdown]
# From here it goes on as in [One hour on real data](one_hour.md). [Collecting votes](../collect.md) describes screens, rules, gold items, adaptive votes, security and
# what the export holds.
