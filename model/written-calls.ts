import { beginning, readCallsToEnd, type WrittenCalls } from './call-forms.ts'
import { findBlocks } from './json.ts'

/**
 * Calls that a model wrote as text, for servers that do not parse them. Such calls count only at
 * the answer's end, never where the text only mentions a call. Such a call is judged like a parsed
 * one.
 */

type FoundCalls =
  | (WrittenCalls & { kind: 'calls' /** Index where the calls begin. */; start: number })
  /** An unreadable call at the end of the answer. */
  | { kind: 'unread'; start: number }
  | null

/**
 * Returns whether a text was copied from results, context or people's messages that this run was
 * shown.
 */
export type Shown = (text: string) => boolean

/** Most places in a text where a call may begin that are tried. */
const maxBeginnings = 16

type Finding = {
  isKnown: (tool: string) => boolean
  wasShown: Shown
  maxChars: number
}

/**
 * Finds the calls at an answer's end. A bare form, which any JSON or list may have, counts only as
 * the whole answer and with a tool's name. A marked form counts after words that announce it. A
 * text in a fence, quote or comment is not a call, nor is a copy of what the run was shown.
 */
export function findWrittenCalls(text: string, { isKnown, wasShown, maxChars }: Finding): FoundCalls {
  let unread: number | null = null
  for (const { start, isBare } of beginningsIn(text)) {
    const found = readCallsToEnd(text, start, maxChars)
    const isCall = isBare || isAnnounced(text.slice(0, start))
    if (!found) {
      if (isCall && !isBare && !hasWordsBehind(text, start)) unread ??= start
      continue
    }
    // Stops, because the text only mentions these calls.
    if (!isCall) return null
    const isNamed = found.calls.every(({ tool }) => isKnown(tool))
    if (isBare && (!isNamed || found.calls.some(({ problem }) => problem !== null))) continue
    if (wasShown(text.slice(start)) || found.calls.some(({ raw }) => wasShown(raw))) return null
    return { kind: 'calls', ...found, start }
  }
  return unread === null || wasShown(text.slice(unread)) ? null : { kind: 'unread', start: unread }
}

function beginningsIn(text: string): { start: number; isBare: boolean }[] {
  const marked: { start: number; isBare: boolean }[] = []
  for (const { index } of text.matchAll(beginning)) {
    if (marked.length === maxBeginnings) break
    marked.push({ start: index, isBare: false })
  }
  const first = text.search(/\S/)
  const isMark = marked[0]?.start === first
  return !isMark && /[[{]/.test(text[first] ?? '') ? [{ start: first, isBare: true }, ...marked] : marked
}

/** Whether prose follows a broken call, which means that the text only mentions the call. */
function hasWordsBehind(text: string, start: number): boolean {
  const ends = [...text.slice(start).matchAll(/<\/[\w:|｜]+>|<[|｜][^<>\n]{1,40}[|｜]>|[}\])]/gu)]
  const last = ends.at(-1)
  return last !== undefined && /\p{L}+ \p{L}+ \p{L}+/u.test(text.slice(start + last.index + last[0].length))
}

/** Matches a sentence about the writer's next step. */
const intent =
  /^(?:(?:ok|okay|so|now|next|first|then|alright|right|great|good|sure|yes|thanks?)\b[,.! ]*)*(?:i(?:'|’)?(?:ll| will|m| am| need| want| have to| must| should| look| check| read| ask| query| call| start| begin)\b|i(?:'|’)d like\b|let(?:'|’)?s\b|let (?:me|us)\b|we(?:'|’)?(?:ll| will| need| should| have to)\b|(?:look|check|read|query|call|gett|fetch|inspect|list|search|ask|verify)(?:ing)?\b)/i
/** Matches words of a sentence that explains how calls look. */
const form =
  /\b(?:example|e\.g|i\.e|such as|like (?:this|so)|as follows|format|form|syntax|template|schema|instead|never|not|n't|would|could|might|suppose\w*|says?|said|saying|wrote|written|quot\w+|literal\w*|planted|inject\w*|ignore\w*|pretend\w*|imitat\w*)\b/i
/** Matches words of a sentence that reports something. */
const report =
  /\b(?:logs?|logged|lines?|documentation|docs?|manual|readme|reads|writes?|prints?|printed|output|messages?|texts?|strings?|should|must|was|were|had|has|they|users?|persons?|people|admins?|operators?|someone|somebody|models?|assistants?|runbooks?|tickets?|comments?|saw|seen|found|got|received|contains?|holds?|shows?|answer(?:s|ed)?)\b/i

/**
 * Whether the text before a call allows it to be a call: there is no text, or it ends before the
 * call and either announces the call or at least does not report it.
 */
function isAnnounced(before: string): boolean {
  if (before.trim() === '') return true
  const line = before.slice(before.lastIndexOf('\n') + 1)
  if (isQuoting(before, line)) return false
  const isOwnLine = line.trim() === ''
  const said = before.trimEnd()
  // Accepts Harmony's marks and tags, which end a message like a full stop ends a sentence.
  if (!isOwnLine && !/[.!?…)>]$|[|｜]>$/u.test(said) && !isIntent(said)) return false
  return isIntent(said) || (!/[:：]$/u.test(said) && !form.test(sentenceOf(said)) && !report.test(sentenceOf(said)))
}

const isIntent = (said: string): boolean => intent.test(sentenceOf(said)) && !form.test(sentenceOf(said))

/** Returns the last sentence of a text, without the marks at its beginning. */
function sentenceOf(said: string): string {
  const sentences = said.split(/(?<=[.!?…])\s+|\n+|<[|｜][^<>\n]{1,40}[|｜]>/u)
  return (sentences.findLast((each) => /\p{L}/u.test(each)) ?? '').replace(/^[\s*_#>\-•\d.)]+/u, '').trim()
}

/**
 * Whether the place before a call is within a fence, a quote, a comment, a line of a list or table,
 * or JSON.
 */
function isQuoting(before: string, line: string): boolean {
  const fences = before.match(/^\s*(?:```|~~~)/gm)?.length ?? 0
  const isOpen = (sign: RegExp) => (line.match(sign)?.length ?? 0) % 2 === 1
  return (
    fences % 2 === 1 ||
    isOpen(/`/g) ||
    isOpen(/"/g) ||
    /[“«‹'‘][^”»›'’]*$/u.test(line.replace(/\p{L}['’]\p{L}/gu, '')) ||
    /^\s*(?:>|\||[-*•]\s|\d+[.)]\s*$|\[?\d{4}-\d\d-\d\d|\w+\[\d+\]:)/.test(line) ||
    (before.lastIndexOf('<!--') > before.lastIndexOf('-->') && before.includes('<!--')) ||
    findBlocks(before, before.length).some(({ problem }) => problem === 'it never ends')
  )
}

/**
 * Returns a check whether a text was copied from one of these texts. The check compares letters and
 * digits, so that neither JSON's escapes nor changed template marks hide a copy.
 */
export function shownIn(texts: readonly string[]): Shown {
  let plain: string | null = null
  return (text) => {
    plain ??= texts.map(lettersOf).join('\n')
    const wanted = lettersOf(text)
    return wanted.length >= minCopied && plain.includes(wanted)
  }
}

/** Letters and digits from which a match counts as a copy; a shorter text might match by chance. */
const minCopied = 12

const lettersOf = (text: string): string =>
  text
    .replace(/\\+u([0-9a-fA-F]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\\+[nrtbf]/g, '')
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '')
