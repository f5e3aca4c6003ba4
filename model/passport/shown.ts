import { renderMessages } from '../messages.ts'
import { converge, found, nodesOf, nodesSeen, type ProbeStep, shardSeen, toTranscript, verified } from './world.ts'

/** A repair that held, used by two probes, and what a model was shown of it. */

export const repaired: readonly ProbeStep[] = [
  shardSeen,
  nodesSeen,
  {
    tool: 'converge_shard',
    given: converge,
    result: found(
      18,
      { detail: 'converged db-fra-2: restarted replication on node-db-fra-2b' },
      verified('held', 'all 2 nodes of db-fra-2 are nominal', 20),
    ),
  },
  {
    tool: 'list_nodes_by_shard',
    given: { shard_id: 'db-fra-2' },
    result: found(23, nodesOf('nominal', null)),
  },
]
/**
 * Maps row numbers to the texts that a model may quote: the result as shown, without repeats and
 * unchanged parts, and the row itself. The number of a write and the number of its verification
 * both lead to the write's texts.
 */
function shownBy(steps: readonly ProbeStep[]): Map<number, string[]> {
  const messages = renderMessages('native', [], toTranscript(steps), new Map(), Number.POSITIVE_INFINITY)
  const shown = messages.flatMap(({ role, content }) => (role === 'tool' && content ? [content] : []))
  return new Map(
    steps.flatMap(({ result }, index) => {
      const texts = [flat(shown[index] ?? ''), flat(JSON.stringify(result))]
      const { seq, verification } = result.meta as { seq: number; verification?: { seq: number } }
      return [seq, ...(verification ? [verification.seq] : [])].map((each): [number, string[]] => [each, texts])
    }),
  )
}

/** Removes blanks, quotes and backslashes, because a quote may leave out JSON's punctuation. */
function flat(text: string): string {
  return text.replace(/[\s"\\]+/g, '')
}

export const shownOfRepair = shownBy(repaired)

/** Whether the words of a quote are in the shown result that the quote cites. */
export function isShown({ seq, text }: { seq: unknown; text: unknown }, shown: ReadonlyMap<number, string[]>): boolean {
  const words = typeof text === 'string' ? flat(text) : ''
  return words !== '' && typeof seq === 'number' && (shown.get(seq) ?? []).some((each) => each.includes(words))
}
