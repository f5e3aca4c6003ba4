import type { CapabilityGap } from '../../domain/capability-gap.ts'
import { formatNumber, formatSpan, withSpaces } from '../../domain/format.ts'
import { formatDollars } from '../../domain/price.ts'
import type { SpentOn } from '../../domain/status.ts'
import type { Usage } from '../../domain/usage.ts'
import { type ListPage, useAsk } from '../api.ts'
import { type Column, DataTable, Table, Tally } from '../data-table.tsx'
import { AddressFacet, SelectField, toOptions } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { Fact } from '../marks.tsx'
import { Heading, Nothing, QueryState, Section } from '../page-frame.tsx'
import { Link, navigate, pickSearch, usePlace, withSearch } from '../router.tsx'
import { formatMoment } from '../time.ts'

const periods = [
  ['1', 'one day'],
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
] as const

/** Shows how models were used in the last days, and how much work people had. */
export function UsagePage({ title }: { title: string }) {
  const place = usePlace()
  const days = place.search.get('days') ?? '7'
  const usage = useAsk<Usage>(['usage', days], `/usage?days=${encodeURIComponent(days)}`)
  return (
    <>
      <header>
        <Heading title={title} />
        <SelectField<string>
          label="Over"
          value={days}
          options={periods}
          onChange={(next) => navigate(withSearch(place, { days: next }))}
        />
      </header>
      <QueryState query={usage} what="usage" />
      {usage.data && (
        <div className="stack">
          <Totals usage={usage.data} />
          <Sheet title="Models" items={usage.data.models} columns={modelColumns} toKey={({ model }) => model} />
          <Money money={usage.data.money} />
          <Sheet
            title="Incidents by status"
            items={usage.data.incidents}
            columns={incidentColumns}
            toKey={({ status }) => status}
          />
          <Sheet
            title="Approvals by decision"
            items={usage.data.approvals}
            columns={approvalColumns}
            toKey={({ status }) => status}
          />
          <Days days={usage.data.byDay} />
        </div>
      )}
    </>
  )
}

/** Shows the cost of models: today and this month beside the limits, then by model and type. */
function Money({ money }: { money: Usage['money'] }) {
  if (money.byModel.every(({ dollars }) => dollars === 0) && money.day.cap === null && money.month.cap === null)
    return <p className="soft">These models have no price. Set agent.prices to see the cost of these models.</p>
  return (
    <>
      <p>
        {(['day', 'month'] as const).map((period) => (
          <span key={period}>
            {period === 'day' ? 'Today (UTC) ' : ' · This month (UTC) '}
            {formatDollars(money[period].dollars)}
            {money[period].cap !== null && ` of ${formatDollars(money[period].cap)}`}
          </span>
        ))}
      </p>
      <Sheet title="Cost by model" items={money.byModel} columns={spentColumns('Model')} toKey={({ name }) => name} />
      <Sheet
        title="Cost by type of incident"
        items={money.byType}
        columns={spentColumns('Type')}
        toKey={({ name }) => name}
      />
    </>
  )
}

function spentColumns(head: string): Column<SpentOn>[] {
  return [
    { head, className: 'wraps', cell: ({ name }) => <Inert text={name} /> },
    { head: 'Answers', className: 'num', cell: ({ answers }) => formatNumber(answers) },
    { head: 'Cost', className: 'num', cell: ({ dollars }) => formatDollars(dollars) },
    {
      head: 'Without a price',
      className: 'num wide',
      cell: ({ assumed }) => (assumed > 0 ? `${formatDollars(assumed)} at the highest price` : '–'),
    },
  ]
}

function Totals({ usage }: { usage: Usage }) {
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)
  const tokens = sum(usage.models.map(({ promptTokens, completionTokens }) => promptTokens + completionTokens))
  const incidents = sum(usage.incidents.map(({ count }) => count))
  const asked = sum(usage.approvals.map(({ count }) => count))
  const figures = [
    ['Incidents', formatNumber(incidents)],
    ['Tokens', formatNumber(tokens)],
    ['Tokens per incident', incidents ? formatNumber(tokens / incidents) : '–'],
    ['Approvals requested', formatNumber(asked)],
    ['Approvals per incident', incidents ? (asked / incidents).toFixed(2) : '–'],
  ] as const
  return (
    <dl className="facts">
      {figures.map(([name, value]) => (
        <Fact key={name} name={name} className="figure">
          {value}
        </Fact>
      ))}
    </dl>
  )
}

const formatSeconds = (value: number | null) => (value === null ? '–' : formatSpan(value * 1000))

const modelColumns: Column<Usage['models'][number]>[] = [
  { head: 'Model', className: 'wraps', cell: ({ model }) => <Inert text={model} /> },
  { head: 'Answers', className: 'num', cell: ({ answers }) => formatNumber(answers) },
  { head: 'Failed', className: 'num', cell: ({ failures }) => formatNumber(failures) },
  { head: 'Tokens in', className: 'num', cell: ({ promptTokens }) => formatNumber(promptTokens) },
  { head: 'Tokens out', className: 'num', cell: ({ completionTokens }) => formatNumber(completionTokens) },
  { head: 'Time', className: 'num wide', cell: ({ seconds }) => formatSeconds(seconds) },
  {
    head: 'Tokens estimated',
    className: 'num wide',
    cell: ({ assumed }) => (assumed > 0 ? `in ${formatNumber(assumed)} answers` : '–'),
  },
]

const incidentColumns: Column<Usage['incidents'][number]>[] = [
  { head: 'Status', cell: ({ status }) => withSpaces(status) },
  { head: 'Incidents', className: 'num', cell: ({ count }) => formatNumber(count) },
  { head: 'Median duration', className: 'num', cell: ({ medianSeconds }) => formatSeconds(medianSeconds) },
]

const approvalColumns: Column<Usage['approvals'][number]>[] = [
  { head: 'Approval', cell: ({ status }) => (status === 'consumed' ? 'approved and executed' : withSpaces(status)) },
  { head: 'Count', className: 'num', cell: ({ count }) => formatNumber(count) },
  { head: 'Median wait', className: 'num', cell: ({ medianWaitSeconds }) => formatSeconds(medianWaitSeconds) },
  { head: 'Longest wait', className: 'num', cell: ({ longestWaitSeconds }) => formatSeconds(longestWaitSeconds) },
]

type Day = Usage['byDay'][number]

function Days({ days }: { days: Day[] }) {
  const max = Math.max(1, ...days.map(({ tokens }) => tokens))
  const columns: Column<Day>[] = [
    { head: 'Day', className: 'nowrap', cell: ({ day }) => <Inert text={day} /> },
    { head: 'Incidents', className: 'num', cell: ({ incidents }) => formatNumber(incidents) },
    { head: 'Approvals', className: 'num', cell: ({ approvals }) => formatNumber(approvals) },
    { head: 'Tokens', className: 'num', cell: ({ tokens }) => formatNumber(tokens) },
    {
      head: '',
      className: 'wide',
      cell: ({ tokens }) => <Tally share={tokens / max} />,
    },
  ]
  return <Sheet title="By day (UTC)" items={days} columns={columns} toKey={({ day }) => day} />
}

type SheetProps<T> = { title: string; items: T[]; columns: Column<T>[]; toKey(item: T): string }

function Sheet<T>({ title, ...table }: SheetProps<T>) {
  return (
    <Section className="stack tight narrow" title={title}>
      <div className="sheet">
        <Table caption={title} none="Nothing yet." {...table} />
      </div>
    </Section>
  )
}

const categories: CapabilityGap['category'][] = ['investigation', 'remediation', 'notification']

const columns: Column<CapabilityGap>[] = [
  {
    head: 'What was missing',
    className: 'wraps',
    cell: ({ description, at, actor }) => (
      <>
        <Inert text={description} />
        <div className="soft small">
          {formatMoment(at)}, <Inert text={actor.replace(/^agent:.*/, 'the agent')} />
        </div>
      </>
    ),
  },
  { head: 'For', className: 'wide', cell: ({ category }) => category },
  {
    head: 'Incident',
    className: 'nowrap',
    cell: ({ incidentId }) => <Link href={`/incidents/${incidentId}`}>Open</Link>,
  },
]

/** Shows what investigations lacked, which is a list of what to build next. */
export function GapsPage({ title }: { title: string }) {
  const place = usePlace()
  const search = pickSearch(place, ['category', 'cursor'], { limit: '50' })
  const gaps = useAsk<ListPage<CapabilityGap>>(['gaps', search], `/capability-gaps?${search}`)
  return (
    <>
      <Heading title={title} />
      <search className="filters">
        <AddressFacet place={place} name="category" legend="Category" options={toOptions(categories)} />
      </search>
      <DataTable
        query={gaps}
        what="missing tools"
        place={place}
        caption="Missing tools, newest first"
        columns={columns}
        toKey={({ id }) => id}
        empty={
          <Nothing title="No gaps reported.">
            When an investigation lacks a tool, it reports the missing tool here.
          </Nothing>
        }
      />
    </>
  )
}
