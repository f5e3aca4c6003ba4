import { InvalidArgumentError } from 'commander'
import { parseResourceKey, type ResourceRef, resourceKey } from '../domain/registry.ts'
import { describeStop, type KindStop, nameScope, type StopScope } from '../domain/stop.ts'
import { stopAnswer, stopList } from '../domain/stop-answer.ts'
import type { ApiClient } from './api.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { formatMoment, printList } from './ui/table.ts'
import { inert, parseFutureTime, print, printJson, printNote } from './ui/terminal.ts'

type ScopeOptions = ConnectionOptions & { tool?: string; resource?: ResourceRef; reason?: string }

export function addStopCommand(root: CliCommand): void {
  root
    .command('stop')
    .description('stop a kind of write for the whole site; without a type, list what is stopped')
    .argument('[type]', 'type of incident')
    .option('--tool <tool>', 'writes of this tool alone')
    .option('--resource <kind:id>', 'writes to this resource alone', parseResource)
    .option(
      '--until <time>',
      'a span such as 8h or 3d, or a time such as 2026-12-01T06:00Z (default: until it is resumed)',
      parseFutureTime,
    )
    .option('--reason <text>', 'reason; people and the agent read it')
    .connected(
      '\nFrom this moment the agent neither requests nor begins such a write. It records the write and continues its investigation without it. A write that has begun is finished.\n\nExample:\n  nightshift stop vm_stopped --tool vm_start --until 8h --reason "we upgrade the hypervisors"\n  nightshift stop',
    )
    .calls(stop)
}

export function addResumeCommand(root: CliCommand): void {
  root
    .command('resume')
    .description('allow a stopped kind of write again')
    .argument('<type>', 'type of incident of the stop')
    .option('--tool <tool>', 'tool of the stop, if it has one')
    .option('--resource <kind:id>', 'resource of the stop, if it has one', parseResource)
    .requiredOption('--reason <text>', 'reason, recorded in the audit log')
    .connected('\nExample:\n  nightshift resume vm_stopped --tool vm_start --reason "the upgrade is done"')
    .calls(resume)
}

function parseResource(text: string): ResourceRef {
  const resource = parseResourceKey(text)
  if (!resource) throw new InvalidArgumentError('Write a resource as KIND:ID, such as vm:vm-101.')
  return resource
}

async function stop(
  api: ApiClient,
  type: string | undefined,
  { tool, resource, until, reason, ...options }: ScopeOptions & { until?: string },
): Promise<void> {
  if (type === undefined) {
    if (tool ?? resource ?? until ?? reason)
      throw new CommandFailed(
        'usage',
        'Nothing was stopped: name the type of incident, as in "nightshift stop vm_stopped …".',
      )
    return await listStops(api, options)
  }
  if (reason === undefined) throw new CommandFailed('usage', 'Give a reason: --reason "…".')
  const body = { type, reason, ...(tool && { tool }), ...(resource && { resource }), ...(until && { until }) }
  const answer = stopAnswer.parse(await api.post('/api/v1/stops', body))
  if (options.json) return printJson(answer)
  printNote(`${inert(nameScope(answer.stop))} is ${inert(describeStop(answer.stop))}`)
  if (answer.withdrawn > 0) printNote(`${answer.withdrawn} requests that waited or had not begun are withdrawn.`)
  printNote(`To allow these writes again: "${commandLine(resumeWords(answer.stop))}".`)
}

const resumeWords = ({ type, tool, resource }: StopScope) =>
  [
    `resume ${inert(type)}`,
    ...(tool ? [`--tool ${inert(tool)}`] : []),
    ...(resource ? [`--resource ${inert(resourceKey(resource))}`] : []),
    '--reason "…"',
  ].join(' ')

async function listStops(api: ApiClient, options: ConnectionOptions): Promise<void> {
  const stops = stopList.parse(await api.get('/api/v1/stops'))
  if (options.json) return printJson(stops)
  printList(options, stops.items, 'Nothing is stopped.', {
    WHAT: (each) => inert(nameScope(each)),
    SINCE: (each) => formatMoment(each.at),
    UNTIL: (each) => (each.until ? formatMoment(each.until) : 'resumed'),
    BY: (each) => inert(each.by),
    WHY: (each) => inert(each.reason),
  })
}

async function resume(
  api: ApiClient,
  type: string,
  { tool, resource, reason, ...options }: ScopeOptions,
): Promise<void> {
  const wanted = nameScope({ type, tool: tool ?? null, resource: resource ?? null })
  const { items } = stopList.parse(await api.get('/api/v1/stops'))
  const standing = items.filter((each) => nameScope(each) === wanted)
  if (standing.length === 0) throw new CommandFailed('error', notStopped(wanted, items))
  let left = items
  for (const { id } of standing)
    left = stopList.parse(await api.post(`/api/v1/stops/${encodeURIComponent(id)}/resume`, { reason })).items
  if (options.json) return printJson({ items: left })
  printNote(`${inert(wanted)} is allowed again as before.`)
  for (const each of left.filter((one) => one.type === type))
    print(`  Still stopped: ${inert(nameScope(each))}, ${inert(describeStop(each))}`)
}

function notStopped(wanted: string, standing: readonly KindStop[]): string {
  const others = standing.map((each) => `\n  ${commandLine(resumeWords(each))}`)
  const rest = others.length > 0 ? ` Stops that can be resumed:${others.join('')}` : ' Nothing is stopped.'
  return `${inert(wanted)} is not stopped.${rest}`
}
