"""Stages that verbs go through: the walk over the strategies, what is given up to narrow, and how an export ends."""
