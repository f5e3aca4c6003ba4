import type { Command } from 'commander'
import type { IncidentEvent } from '../../domain/event.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { readIncident } from '../core.ts'
import { tell } from '../demo/tell.ts'
import { followToEnd } from '../incident-end.ts'
import { inert } from '../inert.ts'
import { seconds, within } from '../seconds.ts'
import { actorName, sentence } from '../sentence.ts'
import { liveEvents } from '../stream.ts'
import { data, jsonLine, note } from '../terminal.ts'
import { moment } from '../time.ts'

type Options = Asking & { timeout?: number }

export function watchIncidents(parent: Command): void {
  asking(
    parent
      .command('watch')
      .description('what happens, as it happens; with an ID until that incident is closed')
      .argument('[id]', 'as inc_…; all incidents when absent')
      .option('--timeout <seconds>', 'give up after this long', seconds),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents watch\n  nightshift incidents watch inc_01k… --json')
    .action(async (id: string | undefined, options: Options) => {
      const { api } = connected(options)
      await within(options.timeout, async (signal) => {
        if (id === undefined) {
          const lost = (why: string) => note(`The stream was lost (${inert(why)}) and is taken up again.`)
          for await (const event of liveEvents(api, { signal, onLost: lost })) {
            if (options.json) jsonLine(event)
            else data(ofMany(event))
          }
          return
        }
        const { createdAt } = await readIncident(api, id)
        const told = (event: IncidentEvent) => {
          const text = options.json ? null : tell(event, createdAt)
          if (options.json) jsonLine(event)
          else if (text) data(text)
        }
        await followToEnd(api, id, told, signal)
      })
    })
}

/** A row among those of other incidents: the end of an id is what tells two apart. */
function ofMany(event: IncidentEvent): string {
  const time = moment(event.at).slice(11)
  return `${time} …${inert(event.incidentId).slice(-6)} ${event.kind} ${actorName(event.actor)}: ${sentence(event).slice(0, 300)}`
}
