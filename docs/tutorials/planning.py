# %% [markdown]
# # Planning votes
# You have a pilot: a hundred items with five votes each. How many items with how many votes each should you buy, and which items should
# get the next ones?
#
# ## A pilot
# Made on the spot: 100 items, two classes, 30 simulated people.

# %%
import numpy as np

import dissensus as dis
from dissensus.planning import Prices, next_votes, plan

truth = np.random.default_rng(0).dirichlet([0.5, 0.3], size=100)
pilot = dis.simulate_votes(truth, 5, annotators=30, seed=0, classes=["no", "yes"])
print(dis.inspect(pilot, resamples=100))

# %% [markdown]
# ## What does the money buy?
# Here a vote costs 0.20, an item 0.50, and an answer takes 12 seconds. Every choice below costs the same; the answer names the one with
# which you would most probably notice that one model is more accurate than another.

# %%
found = plan(pilot, goal="accuracy", budget=2000, prices=Prices(vote=0.2, item=0.5, seconds=12))
print(*found.answer, sep="\n")
print(f"{found.best.items} items with {found.best.k} votes each, {found.best.hours:.0f} hours of people's time")

# %% [markdown]
# ## Which items next?
# A hundred further votes, given to the items about which they would tell most.

# %%
further = next_votes(pilot, budget=100)
for item, votes in list(zip(further.items, further.votes))[:5]:
    print(item, votes)

# %% [markdown]
# From the command line: `dissensus plan votes.csv --budget 5000 -o plan`. What is predicted, how, and how well it held on real votes
# is in [Planning votes](../plan.md). To let the server choose as votes come in, see `[adaptive]` in [Collecting votes](../collect.md).
