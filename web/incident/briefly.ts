/** The beginning of what a look found: enough to see whether it is worth opening. */
export function briefly(data: unknown): string {
  const text = JSON.stringify(data) ?? ''
  return text.length > 150 ? `${text.slice(0, 149)}…` : text
}
