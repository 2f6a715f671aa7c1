"""Queues behind the few methods of `base.Adapter`, each run in a process of its own.

base        the protocol, and its parts that are the same for all queues
pacing      when a producer sends
trioboss    this queue
procrastinate, pgqueuer, oban, chancy   queues for Python; chancy_job is the job that chancy imports
node        the same protocol for pg-boss and graphile-worker
"""
