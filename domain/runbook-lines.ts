/**
 * A runbook as this site can follow it. Runbooks are written for many sites and name tools that one
 * lacks; a model that reads of them asks for them. Names stand in backticks; a name of no tool
 * stays.
 */
export function fitToSite(body: string, { every, here }: { every: Names; here: Names }): string {
  const lacking = (text: string) => namesIn(text, every).filter((name) => !here.has(name))
  const lacksAll = (text: string) => {
    const named = namesIn(text, every)
    return named.length > 0 && named.every((name) => !here.has(name))
  }
  const kept = body.split('\n').flatMap((line) => {
    if (lacking(line).length === 0) return [line]
    // One line may offer several ways: the sentences about what is here stay.
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
