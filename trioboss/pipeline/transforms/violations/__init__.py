"""Violations of the guarantees, found in history. Each module has some checks; each check returns findings.

finding       the columns of a finding
exclusion     attempts that ran together, and jobs that waited together, although their policy forbids it
order         strict FIFO: starts out of order
ends          attempts over the limit, jobs with two ends or with retries left, attempts without an end
instants      starts before their time, ends before their start or before the send
dead_letters  dead letter jobs that are missing, or sent twice

A finding is certain, or only possible: something legitimate that leaves no trace in history may explain it. These are
legitimate, and must not be found:

- An attempt that was lost or expired ends when its lease is taken back, not when its handler stops. The next attempt
  starts after that, so leases never overlap, whatever handlers do.
- A failed or cancelled end can be undone (`retry`, `resume`), and both ends are then in a lake. The second end needs a
  new attempt. A completed job never comes back.
- A resumed job of strict FIFO is in its old position, which others have passed. Its start_after is the time of that,
  and only those that became ready after it have passed it. A job that was cancelled while it waited for a retry leaves
  no trace in the database once it is resumed.
- Deferred jobs, dead letter jobs and jobs of queues with `commit_order` off join the backlog of their key later than
  their number suggests.
- Deleted jobs leave their attempts behind, but neither policy nor position; nothing is concluded from these.

A claim takes its time (started_on) from the clock after it has seen the end of the attempt before; an end takes its
time (completed_on, ended_on) when its statement begins. So a start is later than the end that it has seen, by however
little, unless the server's clock was set back. For that, the checks have a tolerance, which is 0 by default.
"""
