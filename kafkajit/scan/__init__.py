"""Plans and reads tables over folders of logs: files, stretches of them, and tasks."""
