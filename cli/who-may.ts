import { whoMay } from '../domain/who-may.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { printList } from './ui/table.ts'
import { collectValues, inert, print, printJson } from './ui/terminal.ts'

type WhoMayOptions = ConnectionOptions & { resource: string[]; type?: string; risk?: string; at?: string }

export function addWhoMayCommand(program: CliCommand): void {
  program
    .command('who-may')
    .description('who may decide about an approval or a call, and why the others may not')
    .argument('<call>', 'an approval by its id, or a tool by its name')
    .option(
      '--resource <kind:id>',
      'a resource that the call would change, such as host:db-1; repeatable',
      collectValues,
      [],
    )
    .option('--type <type>', 'the type of the incident, such as disk_pressure')
    .option('--risk <risk>', 'risk of the call, if it is higher than the risk of its tool')
    .option('--at <time>', 'use the rights at this time, such as 2026-11-21 or 2026-11-21T01:00:00Z')
    .connected(
      '\nExample:\n  nightshift who-may apr_01kahnv4q2e8w9r7c5x3m1t6zp\n  nightshift who-may execute_migration --type host_down --resource host:host-ams-1 --at 2026-11-21',
    )
    .calls(async (api, call: string, options: WhoMayOptions) => {
      const { resource, type, risk, at } = options
      const of = call.startsWith('apr_')
        ? { approval: call }
        : { tool: call, resources: resource.join(',') || undefined }
      const asked = Object.entries({ ...of, type, risk, at }).filter((pair): pair is [string, string] =>
        Boolean(pair[1]),
      )
      const answer = whoMay.parse(await api.get(`/api/v1/who-may?${new URLSearchParams(asked)}`))
      if (options.json) return printJson(answer)
      const targets = answer.targets.map(({ kind, id }) => `${kind}:${id}`).join(', ') || 'no resource'
      print(
        inert(
          `${answer.risk} risk, ${answer.incidentType}, ${targets}: ${answer.required} of these people, by the rights at ${answer.at}`,
        ),
      )
      const people = answer.people.toSorted((a, b) => Number(a.why !== null) - Number(b.why !== null))
      printList({}, people, 'Nightshift had no people at that time.', {
        NAME: ({ name }) => inert(name),
        ROLE: ({ role }) => inert(role),
        MAY: ({ why }) => (why === null ? 'yes' : `no: ${inert(why)}`),
      })
    })
}
