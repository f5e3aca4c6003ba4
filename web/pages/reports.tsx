import { keepPreviousData } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { formatMinute, formatNumber, formatSpan } from '../../domain/format.ts'
import type { Report, ReportLine, Spread } from '../../domain/report.ts'
import {
  categoryWords,
  describeReport,
  formatCauses,
  formatCost,
  formatShare,
  formatSpread,
} from '../../domain/status-words.ts'
import { useAsk } from '../api.ts'
import { type Column, Table, Tally } from '../data-table.tsx'
import { SelectField, toOptions } from '../fields.tsx'
import { Inert, TextLink } from '../inert.tsx'
import { Heading, Nothing, QueryState, Section } from '../page-frame.tsx'
import { navigate, type PageLocation, pickSearch, usePlace, withSearch } from '../router.tsx'

/**
 * Shows the outcomes of the incidents of some weeks: as figures, as a picture, and as the same
 * numbers in tables and CSV.
 */
export function ReportsPage({ title }: { title: string }) {
  const place = usePlace()
  const search = pickSearch(place, ['since', 'until', 'type', 'severity'], {})
  const report = useAsk<Report>(['report', search], `/reports?${search}`, { placeholderData: keepPreviousData })
  return (
    <>
      <header>
        <Heading title={title} />
        <a href={`/api/v1/reports?${search}${search && '&'}format=csv`} download>
          Download CSV
        </a>
      </header>
      {report.data && <Range place={place} report={report.data} />}
      <QueryState query={report} what="the report" />
      {report.data && <Sheets report={report.data} place={place} />}
    </>
  )
}

/**
 * Asks for the days and the type, which are in the address, so that a report can be sent as a link.
 */
function Range({ place, report: { since, until, byType } }: { place: PageLocation; report: Report }) {
  const type = place.search.get('type') ?? ''
  const types = [...new Set([...byType.map((line) => line.type), ...(type ? [type] : [])])]
  const choose = (change: Record<string, string>) => navigate(withSearch(place, change), { replace: true })
  return (
    <search className="filters">
      {(
        [
          ['since', 'From', since],
          ['until', 'To', until],
        ] as const
      ).map(([name, label, day]) => (
        <label className="row" key={name}>
          {label}
          <input
            type="date"
            value={place.search.get(name) ?? day}
            onChange={({ target }) => target.value && choose({ [name]: target.value })}
          />
        </label>
      ))}
      <SelectField<string>
        label="Type"
        value={type}
        options={[['', 'all'], ...types.map((each) => [each, each] as const)]}
        onChange={(next) => choose({ type: next })}
      />
      <SelectField<string>
        label="Severity"
        value={place.search.get('severity') ?? ''}
        options={[['', 'all'], ...toOptions<string>(['critical', 'warning', 'info'])]}
        onChange={(next) => choose({ severity: next })}
      />
      <span className="soft small">Days in UTC, both included.</span>
    </search>
  )
}

function Sheets({ report: { total, byWeek, byType, spared }, place }: { report: Report; place: PageLocation }) {
  if (total.incidents === 0 && !total.dollars)
    return (
      <Nothing title="No incident began in these days.">Choose an earlier day, all types or all severities.</Nothing>
    )
  return (
    <div className="stack">
      <dl className="facts">
        {describeReport(total).map(({ name, figure, more }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="figure">{figure}</dd>
            {more && <dd className="soft small">{more}</dd>}
          </div>
        ))}
      </dl>
      <Section className="stack tight" id="weeks-title" title="By week">
        <div className="pictures">
          <Weeks lines={byWeek} />
          <Times lines={byWeek} />
        </div>
        <SidewaysSheet name="By week, every column">
          <Table
            caption="By week, the newest first"
            items={byWeek.toReversed()}
            columns={[
              { head: 'Week of', className: 'nowrap', cell: ({ week }) => <Inert text={week} /> },
              ...(lineColumns as Column<(typeof byWeek)[number]>[]),
            ]}
            toKey={({ week }) => week}
          />
        </SidewaysSheet>
      </Section>
      <Section className="stack tight" id="types-title" title="By type">
        <SidewaysSheet name="By type, every column">
          <Table
            caption="By type, the most frequent first"
            items={byType}
            columns={[
              {
                head: 'Type',
                className: 'name wraps',
                cell: ({ type }) => <TextLink href={withSearch(place, { type })} text={type} />,
              },
              ...(lineColumns as Column<(typeof byType)[number]>[]),
            ]}
            toKey={({ type }) => type}
          />
        </SidewaysSheet>
      </Section>
      <Escalations total={total} />
      {spared.length > 0 && <Spared spared={spared} />}
      <p className="soft small">
        Auto-resolved means: resolved before a person decided, wrote or took anything. The share counts closed
        incidents. A repair did not last if its incident opened again, or if its resource had the same trouble within a
        day. The cost counts the model's responses in these days, also for incidents that began earlier.
      </p>
    </div>
  )
}

/**
 * Shows a table that is wider than a phone. The table scrolls sideways with a fixed first column,
 * and the page does not.
 */
function SidewaysSheet({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <p className="soft small sideways-hint">Swipe the table sideways for all columns →</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: who has no finger scrolls it by keyboard. */}
      <section className="sheet sideways" aria-label={name} tabIndex={0}>
        {children}
      </section>
    </>
  )
}

const lineColumns: Column<ReportLine>[] = [
  { head: 'Incidents', className: 'num', cell: ({ incidents }) => formatNumber(incidents) },
  { head: 'Auto-resolved', className: 'num', cell: (line) => formatShare(line) },
  { head: 'Acknowledged', className: 'num nowrap', cell: (line) => formatSpread(line.acknowledgeSeconds) },
  { head: 'Resolved', className: 'num nowrap', cell: (line) => formatSpread(line.resolveSeconds) },
  { head: 'Approvals', className: 'num', cell: ({ approvals }) => formatNumber(approvals) },
  { head: 'Waited', className: 'num nowrap', cell: (line) => formatSpread(line.approvalSeconds) },
  { head: 'Escalated', className: 'num', cell: ({ escalated }) => formatNumber(escalated) },
  {
    head: 'Did not last',
    className: 'num nowrap',
    cell: ({ repairs, repairsNotLasting }) => (repairs === 0 ? '–' : `${repairsNotLasting} of ${repairs}`),
  },
  { head: 'Causes right', className: 'num', cell: formatCauses },
  { head: 'Not shown', className: 'num', cell: ({ unshownClaims }) => formatNumber(unshownClaims) },
  { head: 'Cost', className: 'num', cell: formatCost },
]

function Escalations({ total }: { total: ReportLine }) {
  const max = Math.max(1, ...total.escalations.map(({ count }) => count))
  return (
    <Section className="stack tight narrow" id="escalations-title" title="Why incidents were escalated">
      <div className="sheet">
        <Table
          caption="Escalations by category"
          none="None was escalated."
          items={total.escalations}
          columns={[
            { head: 'Category', className: 'nowrap', cell: ({ category }) => categoryWords[category] },
            { head: 'Incidents', className: 'num', cell: ({ count }) => formatNumber(count) },
            {
              head: '',
              className: 'wide',
              cell: ({ count }) => <Tally share={count / max} />,
            },
          ]}
          toKey={({ category }) => category}
        />
      </div>
    </Section>
  )
}

/** Shows how many pages waited and were then not needed. */
function Spared({ spared }: Pick<Report, 'spared'>) {
  return (
    <Section className="stack tight" id="spared-title" title="Wakes avoided">
      <div className="sheet">
        <Table
          caption="Avoided pages, newest first"
          items={spared}
          columns={[
            { head: 'When', className: 'nowrap', cell: ({ at }) => formatMinute(at) },
            {
              head: 'Incident',
              className: 'wraps',
              cell: ({ incidentId, title }) => <TextLink href={`/incidents/${incidentId}`} text={title} />,
            },
            { head: 'Why', className: 'wraps', cell: ({ text }) => text },
          ]}
          toKey={({ incidentId }) => incidentId}
        />
      </div>
    </Section>
  )
}

type Part = { name: string; tone: string; of(line: ReportLine): number }

/** The parts of a bar, from the bottom. */
const parts: Part[] = [
  { name: 'auto-resolved', tone: 'auto', of: ({ autoResolved }) => autoResolved },
  { name: 'resolved with a person', tone: 'person', of: ({ resolved, autoResolved }) => resolved - autoResolved },
  { name: 'escalated', tone: 'escalated', of: ({ escalated }) => escalated },
  {
    name: 'cancelled, open, or unproven',
    tone: 'other',
    of: ({ incidents, resolved, escalated }) => incidents - resolved - escalated,
  },
]
const size = { width: 520, height: 196, left: 72, right: 14, top: 14, bottom: 32 }
const base = size.height - size.bottom

/** Computes the positions of weeks and amounts, with a scale from zero to the maximum. */
function scaleOf(weeks: number, max: number) {
  const step = (size.width - size.left - size.right) / weeks
  return {
    step,
    x: (at: number) => size.left + (at + 0.5) * step,
    y: (amount: number) => base - (amount / max) * (base - size.top),
  }
}

function Grid({ lines, max, word }: { lines: Report['byWeek']; max: number; word(amount: number): string }) {
  const { x, y } = scaleOf(lines.length, max)
  const every = Math.ceil(lines.length / 6)
  return (
    <>
      {[0, max / 2, max].map((amount) => (
        <g key={amount}>
          <line className="grid" x1={size.left} x2={size.width - size.right} y1={y(amount)} y2={y(amount)} />
          <text x={size.left - 6} y={y(amount) + 4} textAnchor="end">
            {word(amount)}
          </text>
        </g>
      ))}
      {lines.map(
        ({ week }, at) =>
          at % every === 0 && (
            <text key={week} x={x(at)} y={size.height - 6} textAnchor="middle">
              {week.slice(5)}
            </text>
          ),
      )}
    </>
  )
}

/** Draws a bar per week. The table below has the same numbers. */
function Weeks({ lines }: { lines: Report['byWeek'] }) {
  const max = 2 * Math.ceil(Math.max(1, ...lines.map(({ incidents }) => incidents)) / 2)
  const { step, x, y } = scaleOf(lines.length, max)
  return (
    <figure className="chart weeks">
      <svg className="picture" viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
        <Grid lines={lines} max={max} word={formatNumber} />
        {lines.map((line, at) => {
          let below = 0
          return parts.map(({ tone, of }) => {
            const from = y(below)
            below += of(line)
            const box = { x: x(at) - step * 0.35, y: y(below), width: step * 0.7, height: from - y(below) }
            return <rect key={`${line.week} ${tone}`} className={tone} {...box} />
          })
        })}
      </svg>
      <figcaption className="row soft small">
        Incidents:
        {parts.map(({ name, tone }) => (
          <span key={tone}>
            <svg className="key" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
              <rect className={tone} width="10" height="10" />
            </svg>{' '}
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

const times = [
  { name: '50 % within', of: (spread: Spread) => spread?.p50 },
  { name: '90 % within', of: (spread: Spread) => spread?.p90 },
]

/** Draws the time to resolve week by week. A week without a resolved incident leaves a gap. */
function Times({ lines }: { lines: Report['byWeek'] }) {
  const max = Math.max(1, ...lines.map(({ resolveSeconds }) => resolveSeconds?.p90 ?? 0))
  const { x, y } = scaleOf(lines.length, max)
  return (
    <figure className="chart weeks">
      <svg className="picture" viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
        <Grid lines={lines} max={max} word={(seconds) => formatSpan(seconds * 1000)} />
        {times.map(({ name, of }, series) =>
          lines.map((line, at) => {
            const [here, next] = [of(line.resolveSeconds), of(lines[at + 1]?.resolveSeconds ?? null)]
            if (here === undefined) return null
            const to = next === undefined ? `${x(at) + 1},${y(here)}` : `${x(at + 1)},${y(next)}`
            return (
              <g key={`${name} ${line.week}`}>
                <circle className={`dot-${series}`} cx={x(at)} cy={y(here)} r="3" />
                <polyline className={`series series-${series}`} points={`${x(at)},${y(here)} ${to}`} />
              </g>
            )
          }),
        )}
      </svg>
      <figcaption className="row soft small">
        Time to resolve:
        {times.map(({ name }, series) => (
          <span key={name}>
            <svg className="key" viewBox="0 0 20 8" width="20" height="8" aria-hidden="true">
              <polyline className={`series series-${series}`} points="0,4 20,4" />
            </svg>{' '}
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  )
}
