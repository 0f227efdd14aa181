"""Will PPO or DQN learn this, and how long will it take? Forecasts from what an analysis knows.

features     what is known about an MDP before anything is trained
columns      the numbers that a forecast is computed from
survival     the regression behind it, with unsolved runs as censored outcomes
error_curve  the errors for MDPs that were left out, which give intervals and chances
model        the fitted numbers, as a file that comes with the package
prediction   the forecast
fitting      a new model from the rows of a study: `make forecast`

The forecast of a study's computing time is another thing: see `study/forecast.py`.
"""

from efhorizon.callable_module import make_callable

make_callable(__name__)  # `efhorizon.forecast(...)`: see library/
