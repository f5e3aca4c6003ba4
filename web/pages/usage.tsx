import { useQuery } from '@tanstack/react-query'
import { ask } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Inert } from '../inert.tsx'
import { go, usePlace, withSearch } from '../router.tsx'
import { Failed, Loading } from '../states.tsx'
import { span } from '../time.ts'

type Usage = {
  models: {
    model: string
    answers: number
    failures: number
    promptTokens: number
    completionTokens: number
    seconds: number
  }[]
  byDay: { day: string; incidents: number; tokens: number; approvals: number }[]
  incidents: { status: string; count: number; medianSeconds: number | null }[]
  approvals: { status: string; count: number; medianWaitSeconds: number | null; longestWaitSeconds: number | null }[]
}

const number = (value: number) => Math.round(value).toLocaleString('en')
const seconds = (value: number | null) => (value === null ? '–' : span(value * 1000))
const words = (status: string) => status.replaceAll('_', ' ')

/** What the last days took of models and of people. */
export function UsagePage() {
  const place = usePlace()
  const days = place.search.get('days') ?? '7'
  const usage = useQuery({
    queryKey: ['usage', days],
    queryFn: ({ signal }) => ask<Usage>(`/usage?days=${encodeURIComponent(days)}`, { signal }),
  })
  return (
    <>
      <header>
        <Heading title="Usage" />
        <label className="row">
          Over
          <select value={days} onChange={(event) => go(withSearch(place, { days: event.target.value }))}>
            <option value="1">one day</option>
            <option value="7">7 days</option>
            <option value="30">30 days</option>
            <option value="90">90 days</option>
          </select>
        </label>
      </header>
      {usage.error && (
        <Failed error={usage.error} isKept={usage.data !== undefined} again={() => void usage.refetch()} />
      )}
      {usage.isPending && <Loading what="usage" />}
      {usage.data && <Numbers usage={usage.data} />}
    </>
  )
}

function Numbers({ usage }: { usage: Usage }) {
  const tokens = usage.models.reduce(
    (sum, { promptTokens, completionTokens }) => sum + promptTokens + completionTokens,
    0,
  )
  const incidents = usage.incidents.reduce((sum, { count }) => sum + count, 0)
  const asked = usage.approvals.reduce((sum, { count }) => sum + count, 0)
  const most = Math.max(1, ...usage.byDay.map((day) => day.tokens))
  return (
    <div className="stack">
      <dl className="facts">
        <Figure name="Incidents" value={number(incidents)} />
        <Figure name="Tokens" value={number(tokens)} />
        <Figure name="Tokens per incident" value={incidents ? number(tokens / incidents) : '–'} />
        <Figure name="Approvals asked" value={number(asked)} />
        <Figure name="Approvals per incident" value={incidents ? (asked / incidents).toFixed(2) : '–'} />
      </dl>
      <Sheet title="Models" head={['Model', 'Answers', 'Failed', 'Tokens in', 'Tokens out', 'Time']} wide={['Time']}>
        {usage.models.map((each) => (
          <tr key={each.model}>
            <td className="wraps">
              <Inert text={each.model} />
            </td>
            <td className="num">{number(each.answers)}</td>
            <td className="num">{number(each.failures)}</td>
            <td className="num">{number(each.promptTokens)}</td>
            <td className="num">{number(each.completionTokens)}</td>
            <td className="num wide">{seconds(each.seconds)}</td>
          </tr>
        ))}
      </Sheet>
      <Sheet title="How incidents stand" head={['Status', 'Incidents', 'Median time to its end']}>
        {usage.incidents.map((each) => (
          <tr key={each.status}>
            <td>{words(each.status)}</td>
            <td className="num">{number(each.count)}</td>
            <td className="num">{seconds(each.medianSeconds)}</td>
          </tr>
        ))}
      </Sheet>
      <Sheet title="What people were asked" head={['Approval', 'Count', 'Median wait', 'Longest wait']}>
        {usage.approvals.map((each) => (
          <tr key={each.status}>
            <td>{words(each.status)}</td>
            <td className="num">{number(each.count)}</td>
            <td className="num">{seconds(each.medianWaitSeconds)}</td>
            <td className="num">{seconds(each.longestWaitSeconds)}</td>
          </tr>
        ))}
      </Sheet>
      <Sheet title="By day (UTC)" head={['Day', 'Incidents', 'Approvals', 'Tokens', '']}>
        {usage.byDay.map((each) => (
          <tr key={each.day}>
            <td className="nowrap">
              <Inert text={each.day} />
            </td>
            <td className="num">{number(each.incidents)}</td>
            <td className="num">{number(each.approvals)}</td>
            <td className="num">{number(each.tokens)}</td>
            <td className="wide">
              <svg className="tally" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                <rect width={(each.tokens / most) * 100} height="6" />
              </svg>
            </td>
          </tr>
        ))}
      </Sheet>
    </div>
  )
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="figure">{value}</dd>
    </div>
  )
}

function Sheet({
  title,
  head,
  wide = [],
  children,
}: {
  title: string
  head: string[]
  /** Columns that a narrow screen does without. */
  wide?: string[]
  children: React.ReactNode[]
}) {
  return (
    <section className="stack tight narrow">
      <h2>{title}</h2>
      <div className="sheet">
        <table>
          <caption className="visually-hidden">{title}</caption>
          <thead>
            <tr>
              {head.map((word, index) =>
                word ? (
                  <th
                    key={word}
                    scope="col"
                    className={`${index > 0 ? 'num' : ''} ${wide.includes(word) ? 'wide' : ''}`}
                  >
                    {word}
                  </th>
                ) : (
                  <td key="bar" className="wide" />
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {children.length > 0 ? (
              children
            ) : (
              <tr>
                <td colSpan={head.length} className="soft">
                  Nothing yet.
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
    </section>
  )
}
