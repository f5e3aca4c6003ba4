import { useMemo, useState } from 'react'
import type { ServedBrief } from '../../domain/brief.ts'
import type { NearChange } from '../../domain/change.ts'
import type { LiveAnswer } from '../../domain/chat.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { describeLiveAnswer, formatSpan } from '../../domain/format.ts'
import type { DetailedIncident, Surroundings } from '../../domain/incident-detail.ts'
import { type ChartMark, type ChartSeries, findLimit, readSummary } from '../../domain/plot.ts'
import { queryClient, useAsk } from '../api.ts'
import { Inert, TextBox } from '../inert.tsx'
import { useLiveAnswer } from '../live.tsx'
import { Fact } from '../marks.tsx'
import { Failed } from '../page-frame.tsx'
import { useNow } from '../time.ts'
import { Chart } from './chart.tsx'
import { ActionDialog } from './endings.tsx'
import { getReading, getRefusal, type SourceAnswer } from './rows.ts'

type ProgressProps = { incident: DetailedIncident; surroundings: Surroundings | null; events: IncidentEvent[] }

/**
 * Shows the present while no row is written: what is awaited, how long, which turn it is, and a
 * button to stop it.
 */
export function Progress({ incident, surroundings, events }: ProgressProps) {
  const now = useNow()
  const live = useLiveAnswer(incident.id)
  if (incident.status === 'open' && incident.queue) {
    return (
      <p className="said progress" role="status">
        <Inert text={incident.queue.text} />
      </p>
    )
  }
  if (incident.status !== 'investigating') return null
  const { what, since, turn } = doingNow(incident, events)
  const refused = getRefusal(surroundings, 'take')
  return (
    <div className="said progress row between">
      {live ? (
        <Writes live={live} />
      ) : (
        <p>
          <Inert as="strong" text={what} />
          {since !== null && <span className="soft"> · {formatSpan(now - since)}</span>}
          {turn && <span className="soft"> · {turn}</span>}
        </p>
      )}
      <ActionDialog
        incident={incident}
        refused={refused}
        button="Stop"
        path="take"
        title="Stop this run and take the incident"
      >
        <p>
          The run ends after its current step; if a write is running, its result is still checked. Then you have the
          incident. The agent does not investigate it until you give it back.
        </p>
      </ActionDialog>
    </div>
  )
}

/**
 * Shows the model's text while it grows. The text is not kept, because the complete response
 * becomes a row.
 */
function Writes({ live }: { live: LiveAnswer }) {
  return (
    <div className="writing">
      <p>
        <Inert as="strong" text={describeLiveAnswer(live)} />
      </p>
      {live.tail !== '' && (
        <p className="soft small writes">
          … <Inert text={live.tail} />
        </p>
      )}
    </div>
  )
}

type Doing = { what: string; since: number | null; turn: string | null }

/** Describes the current work from the newest rows of this attempt and the request to the model. */
function doingNow({ attempt, model, waits }: DetailedIncident, all: IncidentEvent[]): Doing {
  const events = all.filter((event) => event.attempt === attempt)
  const opening = events.findLast((event) => event.kind === 'context_assembled')
  const context = opening?.kind === 'context_assembled' ? opening.metadata : null
  const answered = events.filter(({ kind }) => kind === 'model_answered').length
  const formatTurn = (number: number) => (context ? `turn ${number} of ${context.maxTurns}` : null)
  if (waits) {
    const away = waits.for === 'database' ? 'database' : 'core API'
    return {
      what: `Waits because the ${away} does not answer`,
      since: Date.parse(waits.since),
      turn: formatTurn(answered),
    }
  }
  if (model) {
    const name = context?.model ?? 'The model'
    const since = Date.parse(model.since)
    if (model.state === 'asked') return { what: `${name} is answering`, since, turn: formatTurn(answered + 1) }
    const ahead = model.ahead === 0 ? 'next' : `${model.ahead} ahead`
    return { what: `Waits for a model slot, ${ahead}`, since, turn: formatTurn(answered + 1) }
  }
  const turn = answered > 0 ? formatTurn(answered) : null
  const last = events.at(-1)
  if (!last) return { what: 'The run begins', since: null, turn }
  const since = Date.parse(last.at)
  if (last.kind === 'tool_started' || last.kind === 'tool_output')
    return { what: `Runs ${last.metadata.tool}`, since, turn }
  if (!context) return { what: 'Gathers context', since, turn }
  return { what: 'Works', since, turn }
}

type Props = { incidentId: string; reading: SourceAnswer }

export function ReadingOf({ event, isOpen = false }: { event: IncidentEvent; isOpen?: boolean }) {
  const found = getReading(event)
  if (!found || event.kind !== 'tool_finished') return null
  const props = { incidentId: event.incidentId, reading: found.reading }
  if (found.isLogs) return <Logs {...props} />
  const { promql, seriesFound, window } = found.reading.summary
  // Uses a title that code wrote, because a model's words are not facts.
  const title = event.metadata.said ?? `${promql}: ${seriesFound} series, ${window}`
  return <Series {...props} title={title} isFinding={isOpen} />
}

/**
 * Shows charts under the cause and the claims of an ending, open, because the charts are the
 * finding.
 */
export function FoundCharts({ events, rows }: { events: readonly IncidentEvent[]; rows: readonly number[] }) {
  const charts = events.filter((event) => rows.includes(event.seq) && getReading(event)?.isLogs === false)
  if (charts.length === 0) return null
  return (
    <Fact name={charts.length === 1 ? 'Chart' : 'Charts'} className="stack">
      {charts.slice(0, maxCharts).map((event) => (
        <ReadingOf key={event.seq} event={event} isOpen />
      ))}
    </Fact>
  )
}

const maxCharts = 3

/** Reads the complete result when a person opens it. */
function useWhole({ incidentId, reading: { digest } }: Props, isWanted: boolean) {
  return useAsk<{ text: string }>(['body', incidentId, digest], `/incidents/${incidentId}/bodies/${digest}`, {
    enabled: isWanted,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/**
 * Lists the marks of a chart: when its alert began, writes, changes, and the threshold of the
 * alert.
 */
function useAround(incidentId: string, isWanted: boolean) {
  const wanted = { enabled: isWanted, staleTime: Number.POSITIVE_INFINITY }
  const incident = useAsk<DetailedIncident>(['incident', incidentId], `/incidents/${incidentId}`, { enabled: isWanted })
  const brief = useAsk<ServedBrief>(['brief', incidentId], `/incidents/${incidentId}/brief`, { enabled: isWanted })
  const events = queryClient.getQueryData<IncidentEvent[]>(['events', incidentId]) ?? []
  const rule = useAsk<{ rule: { expression: string } | null }>(
    ['rule', incidentId],
    `/incidents/${incidentId}/rule`,
    wanted,
  )
  const about = incident.data?.resource
  const changes = useAsk<{ items: NearChange[] }>(
    ['resource-changes', about?.kind, about?.id],
    `/inventory/resources/${about?.kind}/${encodeURIComponent(about?.id ?? '')}/changes`,
    { enabled: isWanted && about != null },
  )
  const toMark = (iso: string, word: string, detail: string) => ({ at: Date.parse(iso) / 1_000, word, detail })
  const since = brief.data?.since
  const marks: ChartMark[] = [
    ...(changes.data?.items ?? []).map(({ at, title }) => toMark(at, 'change', title)),
    ...events.flatMap((event) =>
      event.kind === 'tool_started' && event.metadata.effect === 'write'
        ? toMark(event.at, 'write', event.metadata.tool)
        : [],
    ),
    ...(since ? [{ ...toMark(since.at, since.by, `the ${since.by} began`), isAlert: since.by === 'alert' }] : []),
  ]
  return { marks, rule: rule.data?.rule ?? null, fires: brief.data?.alert.state === 'firing' }
}

function Series({ isFinding, title, ...props }: Props & { isFinding: boolean; title: string }) {
  const [isOpen, setOpen] = useState(isFinding)
  const whole = useWhole(props, isOpen)
  const { marks, rule, fires } = useAround(props.incidentId, isOpen)
  const { summary, source } = props.reading
  const reading = useMemo(() => readSummary(summary), [summary])
  const series = useMemo(() => parseSeries(whole.data?.text ?? ''), [whole.data])
  return (
    <details className="reading" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        Chart of {Number(summary.seriesFound)} series, <Inert text={String(summary.window ?? '')} />
        <Missing reasons={summary.partial} />
      </summary>
      {whole.error && <Failed error={whole.error} again={() => void whole.refetch()} />}
      {isOpen && whole.data && (
        <Chart
          title={title}
          source={source}
          series={series}
          reading={reading}
          limit={findLimit(rule, reading.promql)}
          marks={marks}
          fires={fires}
        />
      )}
    </details>
  )
}

/** Shows the server's warning that data may be missing. */
function Missing({ reasons }: { reasons: unknown }) {
  if (!Array.isArray(reasons) || reasons.length === 0) return null
  return (
    <span className="tone-ink wraps">
      {' '}
      partial: <Inert text={reasons.join('; ')} />
    </span>
  )
}

/** Parses one series per line, and leaves out other lines. */
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

type Template = { template: string; count: number; isNew?: boolean; first?: string; last: string; sample?: string }

/** Number of lines shown at once. `read_result` or the API gives the rest. */
const maxLines = 300

function Logs(props: Props) {
  const [isOpen, setOpen] = useState(false)
  const whole = useWhole(props, isOpen)
  const { summary } = props.reading
  const templates = summary.templates as Template[]
  const lines = whole.data?.text.split('\n') ?? []
  return (
    <div className="reading">
      <Missing reasons={summary.partial} />
      {summary.read !== undefined && (
        <p className="soft small">
          {String(summary.read)} of {summary.lines === undefined ? 'more' : String(summary.lines)} lines were read;
          counts are {String(summary.counts)}.
        </p>
      )}
      <ul className="templates">
        {templates.map(({ template, count, isNew, first, last, sample }) => (
          <li key={template}>
            <details>
              <summary>
                <strong>{count}×</strong> {isNew && <strong className="tone-ink">new </strong>}
                <Inert as="code" className="wraps" text={template} />
              </summary>
              <p className="soft small">
                {first && `first ${first}, `}last {last}
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
        {whole.data && <TextBox label="Lines of the log" text={lines.slice(-maxLines).join('\n')} />}
        {lines.length > maxLines && (
          <p className="soft small">
            The last {maxLines} of {lines.length} lines.
          </p>
        )}
      </details>
    </div>
  )
}
