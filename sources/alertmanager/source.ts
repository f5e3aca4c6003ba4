import { z } from 'zod'
import { describeItems, inBrackets, toList, toText } from '../../domain/say.ts'
import { connectHttp } from '../connect-http.ts'
import { type AskSource, cutText, defineSourceTool, fitSummary, type SourceKind } from '../kind.ts'
import { quoteText } from '../logs/logs.ts'
import { parseAnswer, readSilences, silence } from './silences.ts'

/**
 * Reads an Alertmanager through its API v2
 * (https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml). Creates no silences.
 */

const labels = z.record(z.string(), z.string())
const labelFilter = z
  .record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/, 'is not the name of a label'), z.string().min(1).max(200))
  .default({})
const source = z.string().max(40).optional().describe('where there are several')
const maxLabels = 6

const judgeLabels = ({ labels: given }: { labels: Record<string, string> }) =>
  Object.keys(given).length > maxLabels
    ? {
        ok: false as const,
        reason: `the call has ${Object.keys(given).length} labels, ${maxLabels} at most`,
        bounded: null,
      }
    : { ok: true as const }

const toFilters = (given: Record<string, string>): [string, string][] =>
  Object.entries(given).map(([name, value]) => ['filter', `${name}=${quoteText(value)}`])

const alert = z.looseObject({
  labels,
  startsAt: z.string(),
  status: z.looseObject({
    state: z.string(),
    silencedBy: z.array(z.string()).default([]),
    inhibitedBy: z.array(z.string()).default([]),
  }),
})

const listAlerts = defineSourceTool({
  name: 'list_alerts',
  isRare: true,
  description: 'Alerts that Alertmanager holds now, also those that are silenced or inhibited, newest first.',
  input: z.strictObject({ source, labels: labelFilter.describe('only alerts with these labels') }),
  judge: judgeLabels,
  labels: ({ labels: given }) => given,
  say: ({ alertsFound, alerts }, { labels: given }) => {
    const named = toList(alerts).map(({ name, state }) => `${toText(name)} (${toText(state)})`)
    return [...Object.values(given), describeItems(named, 'alert', Number(alertsFound))].join(': ')
  },
  async read(ask, { labels: given }) {
    const search = new URLSearchParams([
      ...toFilters(given),
      ['active', 'true'],
      ['silenced', 'true'],
      ['inhibited', 'true'],
    ])
    const alerts = parseAnswer(z.array(alert), await ask({ path: `/api/v2/alerts?${search}` }))
    const newest = alerts.toSorted((a, b) => b.startsAt.localeCompare(a.startsAt))
    const byName = Object.entries(Object.groupBy(alerts, ({ labels: { alertname = '?' } }) => alertname))
      .map(([name, of]): [string, number] => [name, of?.length ?? 0])
      .sort((a, b) => b[1] - a[1])
    const items = newest.map(({ labels: { alertname, ...others }, startsAt, status }) => ({
      name: alertname,
      since: startsAt,
      state: status.inhibitedBy.length > 0 ? 'inhibited' : status.silencedBy.length > 0 ? 'silenced' : status.state,
      labels: others,
    }))
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        alertsFound: alerts.length,
        byName: Object.fromEntries(byName.slice(0, 10)),
        alerts: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: items.map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: alerts.length === 0,
    }
  },
})

const operator = (isEqual: boolean, isRegex: boolean): string =>
  isEqual ? (isRegex ? '=~' : '=') : isRegex ? '!~' : '!='

const listSilences = defineSourceTool({
  name: 'list_silences',
  isRare: true,
  description: 'Silences that are in force or will be: what they match, until when, who made them and why.',
  input: z.strictObject({ source, labels: labelFilter.describe('only silences that match these labels') }),
  judge: judgeLabels,
  labels: ({ labels: given }) => given,
  say: ({ silencesFound, silences }, { labels: given }) => {
    const named = toList(silences).map(
      ({ by, until, why }) => `by ${toText(by)} until ${toText(until)}${inBrackets(why)}`,
    )
    return [...Object.values(given), describeItems(named, 'silence', Number(silencesFound))].join(': ')
  },
  async read(ask, { labels: given }) {
    const search = new URLSearchParams(toFilters(given))
    const all = parseAnswer(z.array(silence), await ask({ path: `/api/v2/silences?${search}` }))
    const items = all
      .filter(({ status }) => status.state !== 'expired')
      .sort((a, b) => a.endsAt.localeCompare(b.endsAt))
      .map(({ status, matchers, startsAt, endsAt, createdBy, comment }) => ({
        matches: matchers.map(
          ({ name, value, isRegex, isEqual }) => `${name}${operator(isEqual, isRegex)}${JSON.stringify(value)}`,
        ),
        state: status.state,
        from: startsAt,
        until: endsAt,
        by: cutText(createdBy, 80),
        why: cutText(comment, 200),
      }))
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        silencesFound: items.length,
        silences: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: items.map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: items.length === 0,
    }
  },
})

const status = z.looseObject({ versionInfo: z.looseObject({ version: z.string() }) })

async function probe(ask: AskSource): Promise<string> {
  const { versionInfo } = parseAnswer(status, await ask({ path: '/api/v2/status' }))
  return `the source answers: Alertmanager ${versionInfo.version.slice(0, 40)}`
}

export const alertmanager: SourceKind = {
  kind: 'alertmanager',
  title: 'Alertmanager',
  options: z.strictObject({}),
  connect: connectHttp,
  probe,
  readSilences,
  tools: [listAlerts, listSilences],
}
