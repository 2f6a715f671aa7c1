trioboss create-queue email > /dev/null
# begin full
trioboss queues                                    # which queue
trioboss update-queue email --delete-after 1d      # keep its jobs for a day, also those that have ended
trioboss delete email --state completed --until 2d --dry-run
# end full
