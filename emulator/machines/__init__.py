"""The machines behind the guests of an emulated account."""
