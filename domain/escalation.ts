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
