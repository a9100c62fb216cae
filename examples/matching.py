# %% [markdown]
# # Who wanted what?
#
# A ferry has brought home what sensors measured. Which of it did the subscribers ask for? Open this file as a notebook
# (any editor that knows `# %%` cells), or run it: `python examples/matching.py`.

# %%
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from serai import load_scenario, simulate, write_run
from serai.matching.match import match, prepare_match
from serai.spark.session import spark_session
from serai.spark.sources import register_sources

spark = spark_session()

# %% [markdown]
# ## Events and subscriptions
#
# Events have an id and any attributes. One sensor's thermometer is broken now and then.

# %%
rng = np.random.default_rng(7)
count = 5_000
begin = datetime(2026, 11, 1, tzinfo=UTC)
temperature = rng.normal(8, 6, count)
temperature[::500] = np.nan
events = spark.createDataFrame(
    pa.table(
        {
            "event": np.arange(count),
            "site": rng.choice(["north", "north-east", "south"], count),
            "temperature": temperature,
            "seen": [begin + timedelta(seconds=30 * number) for number in range(count)],
        }
    )
)
subscriptions = spark.createDataFrame(
    [
        ("frost", "temperature < 0"),
        ("frost in the north", "temperature < 0 and site starts with 'north'"),
        ("the first night", "seen < 2026-11-01T06:00:00+01:00"),
        ("a slip of the pen", "temprature < 0"),
    ],
    "subscription string, where string",
)

# %% [markdown]
# ## Matching
#
# Rows that cannot be used are not lost: they are in `rejected`, with the reason.

# %%
matching = prepare_match(events, subscriptions)
print(matching.plan)
matching.rejected.show(truncate=False)
matching.answer.groupBy("subscription").count().orderBy("subscription").show(truncate=False)

# %% [markdown]
# The same as a count, and the first three events of each:

# %%
counts = match(events, subscriptions, mode="counts")
counts.orderBy("subscription").show(truncate=False)
first = match(events, subscriptions, mode="first", first=3, order_by="seen")
first.join(events, "event").orderBy("subscription", "seen").show(truncate=False)

# %% [markdown]
# ## Runs of the laboratory
#
# A folder of runs is a table as well, so what was simulated can be asked in SQL.

# %%
folder = Path(mkdtemp(prefix="serai-example-"))
small = ["sensors.count=12", "subscribers.count=3", 'field.width="60 m"', 'field.height="60 m"', 'duration="10 min"']
for seed in range(2):
    write_run(simulate(load_scenario("dg", overrides=small), seed=seed), folder / f"seed-{seed}")
register_sources(spark)
deliveries = spark.read.format("serai-log").option("table", "deliveries").load(str(folder))
deliveries.groupBy("seed", "wanted").agg(F.count("*").alias("deliveries")).orderBy("seed", "wanted").show()
