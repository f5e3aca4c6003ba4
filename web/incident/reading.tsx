import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { ask } from '../api.ts'
import { Inert } from '../inert.tsx'
import { Failed } from '../page-frame.tsx'
import { Chart, type ChartSeries } from './chart.tsx'
import { getReading, type Reading } from './rows.ts'

type Props = { incidentId: string; reading: Reading; beganMs: number }

export function ReadingOf({ event, beganMs }: { event: IncidentEvent; beganMs: number }) {
  const found = getReading(event)
  if (!found) return null
  const props = { incidentId: event.incidentId, reading: found.reading, beganMs }
  return found.isLogs ? <Logs {...props} /> : <Series {...props} />
}

/** The whole answer, once a person opens it. */
function useWhole({ incidentId, reading: { digest } }: Props, isWanted: boolean) {
  return useQuery({
    queryKey: ['body', incidentId, digest],
    enabled: isWanted,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => ask<{ text: string }>(`/incidents/${incidentId}/bodies/${digest}`, { signal }),
  })
}

function Series(props: Props) {
  const [isOpen, setOpen] = useState(false)
  const whole = useWhole(props, isOpen)
  const { summary } = props.reading
  const [first] = summary.series as { unit?: string }[]
  return (
    <details className="reading" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        Chart of {Number(summary.seriesFound)} series, <Inert text={String(summary.window ?? '')} />
        <Missing reasons={summary.partial} />
      </summary>
      {whole.error && <Failed error={whole.error} again={() => void whole.refetch()} />}
      {whole.data && <Chart series={parseSeries(whole.data.text)} unit={first?.unit ?? null} beganMs={props.beganMs} />}
    </details>
  )
}

/** The server says that something may be missing: what is shown is not the whole. */
function Missing({ reasons }: { reasons: unknown }) {
  if (!Array.isArray(reasons) || reasons.length === 0) return null
  return (
    <span className="tone-warning wraps">
      {' '}
      partial: <Inert text={reasons.join('; ')} />
    </span>
  )
}

/** One series a line; what is no series is left out. */
function parseSeries(text: string): ChartSeries[] {
  return text.split('\n').flatMap((line): ChartSeries[] => {
    try {
      const series = JSON.parse(line) as Partial<ChartSeries>
      return series.labels && Array.isArray(series.points) ? [series as ChartSeries] : []
    } catch {
      return []
    }
  })
}

type Template = { template: string; count: number; isNew?: boolean; first: string; last: string; sample?: string }

/** Lines that are shown at once; the rest can be read with `read_result` or the API. */
const mostLines = 300

function Logs(props: Props) {
  const [isOpen, setOpen] = useState(false)
  const whole = useWhole(props, isOpen)
  const { summary } = props.reading
  const templates = summary.templates as Template[]
  const lines = whole.data?.text.split('\n') ?? []
  return (
    <div className="reading">
      <Missing reasons={summary.partial} />
      <ul className="templates">
        {templates.map(({ template, count, isNew, first, last, sample }) => (
          <li key={template}>
            <details>
              <summary>
                <strong>{count}×</strong> {isNew && <strong className="tone-warning">new </strong>}
                <code className="wraps">
                  <Inert text={template} />
                </code>
              </summary>
              <p className="soft small">
                first {first}, last {last}
              </p>
              {sample && (
                <pre className="wraps small">
                  <Inert text={sample} />
                </pre>
              )}
            </details>
          </li>
        ))}
      </ul>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>The lines, oldest first</summary>
        {whole.error && <Failed error={whole.error} again={() => void whole.refetch()} />}
        {whole.data && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
          <section className="exact" aria-label="Lines of the log" tabIndex={0}>
            <pre dir="ltr">
              <Inert text={lines.slice(-mostLines).join('\n')} />
            </pre>
          </section>
        )}
        {lines.length > mostLines && (
          <p className="soft small">
            The last {mostLines} of {lines.length} lines.
          </p>
        )}
      </details>
    </div>
  )
}
