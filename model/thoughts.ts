import { findBlocks } from './json.ts'

/** Marks of reasoning that a server leaves in the text: the tags of the models' chat templates. */
const marks: [open: string, close: string][] = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
  ['<thought>', '</thought>'],
  ['<reasoning>', '</reasoning>'],
  ['<seed:think>', '</seed:think>'],
  ['[THINK]', '[/THINK]'],
  ['◁think▷', '◁/think▷'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|channel|>analysis<|message|>', '<|end|>'],
]

/** Other marks of chat templates that a server leaves around an unparsed answer. */
const frames =
  /<\|start\|>assistant|<\|channel\|>(?:final|commentary)<\|message\|>|<\|(?:START|END)_RESPONSE\|>|<\|return\|>/g

const escaped = (text: string) => text.replace(/[[\]|/]/g, '\\$&')

const anyMark = new RegExp(marks.flat().map(escaped).join('|'), 'gi')

const maxJsonCharacters = 400_000

type Mark = { at: number; end: number; pair: number; isOpening: boolean }

/**
 * Removes reasoning: between two marks, after a mark that is never closed, and before a mark that
 * was never opened, because templates open the reasoning for the model. A mark within a complete
 * JSON object is content.
 */
export function withoutThoughts(text: string): string {
  const found = marksIn(text)
  if (found.length === 0) return text
  const kept: string[] = []
  let open: Mark | null = null
  let at = 0
  for (const mark of found) {
    if (open === null && mark.isOpening) {
      kept.push(text.slice(at, mark.at))
      open = mark
    } else if (open === null) {
      // Drops all text before a closing tag without an opening tag, because that text was
      // reasoning.
      kept.length = 0
      at = mark.end
    } else if (!mark.isOpening && mark.pair === open.pair) {
      open = null
      at = mark.end
    }
  }
  if (open === null) kept.push(text.slice(at))
  return kept.join('').replace(frames, '')
}

function marksIn(text: string): Mark[] {
  const objects = text.includes('{') ? findBlocks(text, maxJsonCharacters).filter(({ value }) => value !== null) : []
  const result: Mark[] = []
  let open: number | null = null
  for (const match of text.matchAll(anyMark)) {
    const word = match[0].toLowerCase()
    const pair = marks.findIndex((each) => each.some((mark) => mark.toLowerCase() === word))
    const isOpening = marks[pair]![0].toLowerCase() === word
    // Counts every mark within reasoning, because reasoning also contains drafts of JSON.
    const isQuoted = open === null && objects.some(({ start, end }) => match.index >= start && match.index < end)
    // Ignores `<|end|>` outside reasoning, because it ends any message of its template.
    if (isQuoted || (open === null && !isOpening && match[0] === '<|end|>')) continue
    if (isOpening) open ??= pair
    else if (open === pair) open = null
    result.push({ at: match.index, end: match.index + match[0].length, pair, isOpening })
  }
  return result
}
