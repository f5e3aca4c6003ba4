import { stripText } from './redact.ts'
import { mark } from './redact-names.ts'

/**
 * Private keys over several lines of a log, where no line shows that it is a part. A window may
 * begin or end in a key: lines of base64 of one length in a row count as part of one, as a
 * certificate's do.
 */

const begins = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/
const ends = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/
/** Behind a prefix that a program writes before each line. */
const part = /(?:^|(?<=[\s|>"':\]]))[A-Za-z0-9+/]{16,}={0,2}(?=[\s"',\\]|$)/g
const lastPart = /^\s*[A-Za-z0-9+/]{1,80}={0,2}\s*$/
const wholePart = /^[A-Za-z0-9+/]{60,80}$/
/** No program writes one over more. */
const maxKeyLines = 200

const isMixed = (text: string): boolean => /[a-z]/.test(text) && /[A-Z]/.test(text) && /\d/.test(text)

/** Lines between a key's two lines; those before an end without a beginning count too. */
function findWithin(lines: readonly string[]): Set<number> {
  const within = new Set<number>()
  let opened: number | null = null
  for (const [at, line] of lines.entries()) {
    if (opened !== null && at - opened <= maxKeyLines && !ends.test(line)) within.add(at)
    if (ends.test(line)) {
      if (opened === null) for (let back = at - 1; back >= 0 && lastPart.test(lines[back]!); back -= 1) within.add(back)
      opened = null
    }
    // A key that stands on one line is over there.
    if (begins.test(line) && !ends.test(line)) opened = at
  }
  return within
}

/** The last words of lines, where a run of them has one length and is base64. */
function findRuns(lines: readonly string[]): Set<number> {
  const words = lines.map((line) => /\S+$/.exec(line.trimEnd())?.[0] ?? '')
  const isPart = (at: number) => wholePart.test(words[at] ?? '') && isMixed(words[at]!)
  const isBeside = (at: number, other: number) => isPart(other) && words[other]!.length === words[at]!.length
  return new Set([...words.keys()].filter((at) => isPart(at) && (isBeside(at, at - 1) || isBeside(at, at + 1))))
}

/** The lines, in order, without parts of private keys. `cleanse` is for single lines. */
export function redactKeyLines(lines: readonly string[]): string[] {
  const plain = lines.map((line) => stripText(line))
  const [within, runs] = [findWithin(plain), findRuns(plain)]
  return lines.map((line, at) => {
    if (!within.has(at) && !runs.has(at)) return line
    const hidden = plain[at]!.replace(part, mark('private_key'))
    return within.has(at) && lastPart.test(hidden) ? mark('private_key') : hidden
  })
}
