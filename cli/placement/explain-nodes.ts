import { z } from 'zod'
import { formatCount, formatList } from '../../domain/format.ts'
import { type ConnectionOptions, connect } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { getTerminalWidth, inert, paint, print, printJson, wrap } from '../ui/terminal.ts'

export type NodeOptions = ConnectionOptions & { node: string[]; fails?: boolean; cluster?: string }

const texts = z.array(z.string()).default([])
const foreseen = z.looseObject({
  moves: z.number(),
  stayPending: z.number(),
  inTheWorstOrderTried: z.number().optional(),
  pending: z
    .array(z.looseObject({ workload: z.string(), pods: z.number(), certain: z.boolean(), why: z.string() }))
    .default([]),
  morePending: z.number().default(0),
  drainWaits: texts,
  notMadeAgain: texts,
  waitForTheNodeToBeDeleted: texts,
  endWithTheNode: z.number().default(0),
  loseLocalData: texts,
  tried: texts,
  leftOut: texts,
})
type Foreseen = z.infer<typeof foreseen>
const reading = z.looseObject({ source: z.string(), summary: foreseen })

/**
 * Explains the loss of nodes of a connected cluster: which of their pods would have no place.
 * Throws CommandFailed if a pod would stay pending.
 */
export async function explainNodes(options: NodeOptions): Promise<void> {
  const { node: nodes, fails = false, cluster, json } = options
  const asked = { nodes, intent: fails ? 'failure' : 'drain', ...(cluster && { source: cluster }) }
  const body = { tool: 'kubernetes_node_loss', arguments: asked }
  const answer = reading.parse(await connect(options).api.post('/api/v1/sources/read', body))
  if (json) printJson(answer)
  else print(formatForeseen(answer.summary, nodes, fails))
  if (answer.summary.stayPending > 0) throw new CommandFailed('partial', '')
}

function formatForeseen(found: Foreseen, nodes: readonly string[], fails: boolean): string {
  const width = getTerminalWidth()
  const what = `${formatList(nodes.map((each) => inert(each)))} ${fails ? 'failing' : 'drained'}`
  const list = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [[title, ...lines.map((line) => `  ${wrap(inert(line), width - 4, '    ')}`)].join('\n')]
  const worst = found.inTheWorstOrderTried
  const head =
    found.stayPending === 0
      ? paint(
          'green',
          `With ${what}, ${formatCount(found.moves, 'pod')} would move, and each finds a place${worst ? ` in the best order tried; in another, up to ${worst} would stay pending` : ''}.`,
        )
      : paint(
          ['bold', 'red'],
          `With ${what}, ${formatCount(found.moves, 'pod')} would move, and ${found.stayPending} would stay pending${worst ? `; up to ${worst} in another order` : ''}.`,
        )
  const pending = found.pending.map(
    ({ workload, pods, certain, why }) =>
      `${workload}${pods > 1 ? `: ${pods}` : ''}${certain ? '' : ' (by the order in which pods are placed)'}: ${why}`,
  )
  const more = found.morePending > 0 ? [`and ${formatCount(found.morePending, 'workload')} more`] : []
  return [
    wrap(head, width),
    ...list('Pods that stay pending:', [...pending, ...more]),
    ...list('Tried:', found.tried),
    ...list('The drain waits for:', found.drainWaits),
    ...list('No controller recreates these pods:', found.notMadeAgain),
    ...list('Pods that start elsewhere only once the node is deleted:', found.waitForTheNodeToBeDeleted),
    ...list('Pods that lose their local data:', found.loseLocalData),
    ...(found.endWithTheNode > 0
      ? [`${formatCount(found.endWithTheNode, 'pod')} of DaemonSets or of the node itself stay with the node.`]
      : []),
    paint('dim', wrap(`Not considered: ${found.leftOut.map((each) => inert(each)).join('; ')}.`, width)),
  ].join('\n\n')
}
