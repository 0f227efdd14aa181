"""What should I change? Changes of a table that can be tried without running the environment again.

change       what a change is
base         what several kinds of changes need to know about the table
potentials, horizons, repeats, actions, discounts, exploration, starts
             one kind of change each
user_function, suite_potentials
             where potentials come from
kept         whether optimal behaviour stays optimal
figures      the effective horizon, timesteps and forecast of a table
trial        one change tried
trials       all of them, best first
"""

from efhorizon.callable_module import make_callable

make_callable(__name__)  # `efhorizon.what_if(...)` tries them: see library/
