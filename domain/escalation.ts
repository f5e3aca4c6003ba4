/** What a person who is handed an incident reads first: plain sentences, never data. */
export type EscalationReport = {
  name: string
  severity: string
  resource: string
  since: string
  found: string[]
  ruledOut: string[]
  changed: string[]
  nextStep: string
}

/** The report as text, a line a fact, for messages and terminals. */
export function reportText(report: EscalationReport, link: string | null = null): string {
  const list = (title: string, items: string[], none: string) =>
    items.length === 0
      ? [`${title}: ${none}`]
      : items.length === 1
        ? [`${title}: ${items[0]}`]
        : [`${title}:`, ...items.map((item) => `- ${item}`)]
  return [
    `${report.name} (${report.severity}), ${report.resource}, since ${report.since}`,
    ...list('Found', report.found, 'nothing yet'),
    ...list('Ruled out', report.ruledOut, 'nothing'),
    ...list('Changed', report.changed, 'nothing'),
    `Next step: ${report.nextStep}`,
    ...(link === null ? [] : [link]),
  ].join('\n')
}

const codeBlock = /```[\s\S]*?(?:```|$)/g
const longest = 2_000

/**
 * What a model said, as sentences: a model that answers in JSON, or with blocks of it, is quoted by its words alone. People
 * who are woken read no braces.
 */
export function plainWords(text: string): string {
  const trimmed = text.trim()
  const whole = parse(trimmed)
  if (whole !== null) return tidy(wordsIn(whole).join('. '))
  const spoken = withoutObjects(trimmed.replace(codeBlock, (block) => wordsOfBlock(block)))
  return tidy(spoken)
}

/** What is left of an object that was cut reads like one: its braces and quoted names go. */
function tidy(text: string): string {
  const words = text.replace(/[{}]+/g, ' ').replace(/":\s/g, ' ').replace(/\s+/g, ' ').trim()
  return (words || nothingSaid).slice(0, longest).toWellFormed()
}

const nothingSaid = 'It said nothing in words'

function parse(text: string): unknown {
  if (!/^[[{"]/.test(text)) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function wordsOfBlock(block: string): string {
  const inner = block.replace(/^```\w*\n?|```$/g, '')
  const value = parse(inner.trim())
  return value === null ? ' ' : ` ${wordsIn(value).join('. ')} `
}

/** The sentences among the values of an answer in JSON. */
function wordsIn(value: unknown): string[] {
  if (typeof value === 'string') return /\s/.test(value.trim()) ? [value.trim().replace(/[.\s]+$/, '')] : []
  if (Array.isArray(value)) return value.flatMap(wordsIn)
  if (value !== null && typeof value === 'object') return Object.values(value).flatMap(wordsIn)
  return []
}

/** Takes objects and lists out of a sentence, the innermost first, and what is left of one that was cut. */
function withoutObjects(text: string): string {
  let rest = text
  for (let depth = 0; depth < 20; depth += 1) {
    const next = rest.replace(/\{[^{}]*\}|\[\s*"[^[\]]*\]/g, ' ')
    if (next === rest) break
    rest = next
  }
  return rest.replace(/[{[]\s*"[\s\S]*$/, ' ').replace(/"\s*[}\]]+/g, ' ')
}
