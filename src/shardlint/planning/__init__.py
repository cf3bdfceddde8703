"""Which layouts would serve a model on given GPUs, and which of them to choose.

Candidates are counted out (`candidates`), judged by the same rules as a manifest (`shardlint.check.trying`), given
their figures (`weighing`) and put into the order of the decision table (`ranking`).
"""

from shardlint.planning.candidates import Candidate, Machines
from shardlint.planning.plan import Plan, plan
from shardlint.planning.ranking import OBJECTIVES, Objective, Ranked
from shardlint.planning.weighing import Option

__all__ = ["OBJECTIVES", "Candidate", "Machines", "Objective", "Option", "Plan", "Ranked", "plan"]
