"""Will PPO or DQN learn this, and how long will it take? Forecasts from what an analysis knows.

The forecast of a study's computing time is another thing: see `study/forecast.py`.
"""
