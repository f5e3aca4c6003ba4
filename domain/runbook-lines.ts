/**
 * Removes from a runbook the lines and sentences about tools that this installation does not have.
 * Runbooks serve many installations, and a model calls a tool whose name it reads. Names are in
 * backticks. A name in backticks that is not the name of a tool stays.
 */
export function fitToSite(body: string, { every, here }: { every: Names; here: Names }): string {
  const lacking = (text: string) => namesIn(text, every).filter((name) => !here.has(name))
  const lacksAll = (text: string) => {
    const named = namesIn(text, every)
    return named.length > 0 && named.every((name) => !here.has(name))
  }
  const kept = body.split('\n').flatMap((line) => {
    if (lacking(line).length === 0) return [line]
    // Removes single sentences first, because one line may offer several ways, some of them with
    // existing tools.
    const [, head = '', rest = ''] = /^((?:- )?(?:[A-Z][a-z]+: )?)(.*)$/s.exec(line) ?? []
    const sentences = rest.split(/(?<=[.?!]) /).filter((sentence) => !lacksAll(sentence))
    return lacksAll(line) || sentences.length === 0 ? [] : [head + sentences.join(' ')]
  })
  const text = kept
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
  if (text === body) return body
  const left = [...new Set(lacking(text))]
  const note =
    left.length > 0 ? `This site has no ${left.join(', ')}.` : 'Steps that this site has no tool for are left out.'
  return `${text}\n\n${note}`.trim()
}

type Names = { has(name: string): boolean }

function namesIn(text: string, every: Names): string[] {
  return [...text.matchAll(/`([a-z_]+)`/g)].flatMap(([, name = '']) => (every.has(name) ? [name] : []))
}
