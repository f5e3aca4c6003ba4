/**
 * A short piece of a model's own words for a message back to it: one line, at most `maxChars` code points, nothing in it
 * that moves a terminal, hides text or closes the quotes around it.
 */
export function quote(text: string, maxChars = 120): string {
  const start = text.slice(0, maxChars * 8)
  const plain = start
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replaceAll(/[«»]/g, "'")
    .trim()
  const chars = [...plain]
  const isCut = chars.length > maxChars || start.length < text.length
  return `«${chars.slice(0, maxChars).join('')}${isCut ? '…' : ''}»`
}
