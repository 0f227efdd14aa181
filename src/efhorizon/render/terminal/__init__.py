"""What people see in a terminal: functions that yield lines, in rich's markup, and tables. They print nothing."""
