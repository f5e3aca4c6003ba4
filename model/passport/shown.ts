import { renderMessages } from '../messages.ts'
import { converge, found, nodesOf, nodesSeen, type ProbeStep, shardSeen, toTranscript, verified } from './world.ts'

/** A repair that held, as two probes tell it, and what a model was shown of it. */

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
 * Texts that a model may quote, by row number: the result as shown, without repeats and unchanged
 * parts, and the row itself. A write's verification is read with it, so both numbers lead there.
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

/** A quote may leave out what JSON adds. */
function flat(text: string): string {
  return text.replace(/[\s"\\]+/g, '')
}

export const shownOfRepair = shownBy(repaired)

/** Do the words of a quote stand in what was shown of the result that it cites? */
export function isShown({ seq, text }: { seq: unknown; text: unknown }, shown: ReadonlyMap<number, string[]>): boolean {
  const words = typeof text === 'string' ? flat(text) : ''
  return words !== '' && typeof seq === 'number' && (shown.get(seq) ?? []).some((each) => each.includes(words))
}
