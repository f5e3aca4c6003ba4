import type { Command } from 'commander'
import type { IncidentEvent } from '../../domain/event.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { readIncident } from '../core.ts'
import { formatLiveRow } from '../demo/tell.ts'
import { followToEnd } from '../incident-end.ts'
import { inert } from '../inert.ts'
import { parseSeconds, withTimeout } from '../seconds.ts'
import { describeEvent, formatActor } from '../sentence.ts'
import { streamEvents } from '../stream.ts'
import { print, printJsonLine, printNote } from '../terminal.ts'
import { formatMoment } from '../time.ts'

type WatchOptions = ConnectionOptions & { timeout?: number }

export function addWatchCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('watch')
      .description('what happens, as it happens; with an ID until that incident is closed')
      .argument('[id]', 'as inc_…; all incidents when absent')
      .option('--timeout <seconds>', 'give up after this long', parseSeconds),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents watch\n  nightshift incidents watch inc_01k… --json')
    .action(async (id: string | undefined, options: WatchOptions) => {
      const { api } = connect(options)
      await withTimeout(options.timeout, async (signal) => {
        if (id === undefined) {
          const lost = (why: string) => printNote(`The stream was lost (${inert(why)}) and is taken up again.`)
          for await (const event of streamEvents(api, { signal, onLost: lost })) {
            if (options.json) printJsonLine(event)
            else print(formatAmongMany(event))
          }
          return
        }
        const { createdAt } = await readIncident(api, id)
        const told = (event: IncidentEvent) => {
          const text = options.json ? null : formatLiveRow(event, createdAt)
          if (options.json) printJsonLine(event)
          else if (text) print(text)
        }
        await followToEnd(api, id, told, signal)
      })
    })
}

/** A row among those of other incidents: the end of an id is what tells two apart. */
function formatAmongMany(event: IncidentEvent): string {
  const time = formatMoment(event.at).slice(11)
  return `${time} …${inert(event.incidentId).slice(-6)} ${event.kind} ${formatActor(event.actor)}: ${describeEvent(event).slice(0, 300)}`
}
