import { stripText } from '../../safety/strip.ts'
import { decoded } from './content.ts'

/** More than this nobody reads on an approval card. */
const longestDiff = 100_000

/**
 * What a change of one file looks like, as a unified diff with three lines of context; `null` on a side that has no file. Empty when
 * both are the same. Says so in words where a diff would help nobody: binary content, or too much of it.
 */
export async function unifiedDiff(
  path: string,
  before: Buffer | null,
  after: Buffer | null,
): Promise<{ diff: string; truncated: boolean }> {
  if (before && after?.equals(before)) return { diff: '', truncated: false }
  const [old, now] = [textOrNothing(before), textOrNothing(after)]
  if (old === null || now === null) return { diff: `Binary content of ${path} differs\n`, truncated: false }
  // Only asked for when somebody rehearses: an idle agent does not carry it.
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff')
  const diff = createTwoFilesPatch(
    before ? `a${path}` : '/dev/null',
    after ? `b${path}` : '/dev/null',
    old,
    now,
    undefined,
    undefined,
    { context: 3, timeout: 5_000, headerOptions: FILE_HEADERS_ONLY },
  )
  if (diff === undefined) return { diff: `${path} changes in too many places to show\n`, truncated: true }
  const note =
    stripText(now) === now.replaceAll('\r\n', '\n') ? '' : '[the new content holds characters that cannot be seen]\n'
  if (diff.length <= longestDiff) return { diff: diff + note, truncated: false }
  const left = diff.length - longestDiff
  return { diff: `${diff.slice(0, longestDiff).toWellFormed()}\n[${left} characters more]\n${note}`, truncated: true }
}

const textOrNothing = (bytes: Buffer | null) => (bytes ? decoded(bytes) : '')
