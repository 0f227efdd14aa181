"""How hard is an environment, by playing it: no table, any size, with or without chance.

stage            an environment that is played, marked and returned to; simulator_stage, gymnasium_stage
episodes         what one process does: random episodes, runs of GORP, greedy play with its gaps
doses            which m the next runs of GORP get
least_episodes   the interval for the least m
decisions        gaps and the m that decides one step, from samples
random_play      what random episodes showed
survey           the order of all tasks, its budget and its log
diagnosis        the result
"""

from efhorizon.callable_module import make_callable

make_callable(__name__)  # `efhorizon.diagnose(...)` does it: see library/
