"""Decisions about what happens next, without I/O. Events go in, commands come out, the time is an argument.

dispatch     one queue: when to claim, settle, recover leases, wait, or stop
dispatch_commands  its commands to the dispatcher
room         several queues of one worker: which may claim, when there is little room
attempt      one attempt: its table of states and events
settling     how many outcomes go into one statement, and when postponed ones are tried again
lease        one lease: when to renew it, and when to cancel the job
listening    the listener: when to ping, poll or reconnect
maintenance  when to rescue leases and to prune
restart      how often an actor may crash
"""
