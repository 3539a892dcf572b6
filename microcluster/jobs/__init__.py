"""Pure planning of training jobs: argv, environment, rendered files and progress; nothing here acts."""
