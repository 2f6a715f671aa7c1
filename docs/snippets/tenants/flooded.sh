trioboss create-queue imports --policy singleton > /dev/null
for number in 1 2 3; do trioboss send imports "$number" -o singleton_key=big > /dev/null; done
trioboss send imports 4 -o singleton_key=small > /dev/null
# begin flooded
trioboss queues                                                # which queue; `trioboss top` shows it live
trioboss jobs imports --state created --newest --limit 2       # which jobs
trioboss pause imports                                         # let no worker take jobs of it
trioboss cancel imports --key big --dry-run                    # count the jobs of the tenant,
trioboss cancel imports --key big --yes                        # and cancel them, without a question
trioboss unpause imports
trioboss resume imports --key big --yes                        # later: queue them again
# end flooded
