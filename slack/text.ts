import { inertText } from '../domain/inert-text.ts'

export type PlainText = { type: 'plain_text'; text: string; emoji: false }

/** What Slack takes at most. Of all blocks together it takes about 13,200 characters, which nobody documents. */
export const slackLimits = {
  header: 150,
  section: 3_000,
  buttonText: 75,
  buttonUrl: 3_000,
  confirmTitle: 100,
  confirmText: 300,
} as const

/** A stranger's words where Slack reads no formatting, link or mention; at most `maxChars` as they are sent. */
export function plainText(text: string, maxChars: number): PlainText {
  return { type: 'plain_text', text: fallbackText(text, maxChars) || '-', emoji: false }
}

/** The same for the one place where Slack does read formatting: the text of a notification. */
export function fallbackText(text: string, maxChars: number): string {
  return escapeText(inertText(text, maxChars), maxChars)
}

/**
 * The text, if all of it can be shown as it is within so many characters: not cut, nothing replaced, no word broken. Null
 * where what is seen would not be what is meant.
 */
export function exactText(text: string, maxChars: number): PlainText | null {
  // What a screen leaves out, and what it has no picture for.
  if (/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Co}\p{Cn}]/u.test(text)) return null
  const shown = plainText(text, maxChars)
  return unescaped(shown.text) === text ? shown : null
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** `&`, `<` and `>` as Slack wants them, and no word that rings everybody. Never cut inside an entity. */
function escapeText(text: string, maxChars: number): string {
  let escaped = ''
  for (const char of text.replaceAll(/@(?=channel|here|everyone|group)/giu, '@ ')) {
    const next = entities[char] ?? char
    if (escaped.length + next.length > maxChars - 1) return `${escaped}…`
    escaped += next
  }
  return escaped
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

/** A button's address: a web address within Slack's limit. */
export function isLink(url: string): boolean {
  const parsed = url.length <= slackLimits.buttonUrl ? URL.parse(url) : null
  return parsed !== null && (parsed.protocol === 'https:' || parsed.protocol === 'http:')
}
