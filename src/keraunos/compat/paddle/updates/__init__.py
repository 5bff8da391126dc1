"""How Paddle trains: its learning methods, schedules and regularisation, on servers and in local steps."""
