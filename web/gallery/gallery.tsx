import { QueryClientProvider } from '@tanstack/react-query'
import { type ReactNode, StrictMode, useMemo, useState } from 'react'
import { createRoot } from 'react-dom/client'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { queryClient } from '../api.ts'
import { Table } from '../data-table.tsx'
import { Drawer } from '../drawer.tsx'
import { ChipFilter, Facet, TextField } from '../fields.tsx'
import { Tonight } from '../home/page.tsx'
import { NightParts } from '../home/parts.tsx'
import { FirstSteps } from '../home/steps.tsx'
import { Answer, DecisionSentence, Glance } from '../incident/brief.tsx'
import { Chart } from '../incident/chart.tsx'
import { Rail } from '../incident/rail.tsx'
import { listQuotes, RowDrawer } from '../incident/row-drawer.tsx'
import { RowLink } from '../incident/row-link.tsx'
import { Strip } from '../incident/strip.tsx'
import { useCursor } from '../keys.tsx'
import { columnsAt, rowProps } from '../list/columns.tsx'
import { type GroupedBy, type ListLine, toLines } from '../list/lines.ts'
import { RiskMark, SeverityMark, StatusMark, statuses } from '../marks.tsx'
import { Confirm, Failed, Loading, Nothing } from '../page-frame.tsx'
import '../style.ts'
import {
  approval,
  brief,
  emptyNight,
  events,
  firstSight,
  incidents,
  longTitle,
  many,
  marks,
  night,
  now,
  reading,
  series,
  surroundings,
  unknownBrief,
} from './worst.ts'

/**
 * Shows every component with its worst content, for a browser test. The page is not part of the
 * product.
 */
function Gallery() {
  const [first] = incidents
  const [size] = useState(Number(new URLSearchParams(location.search).get('rows') ?? 0))
  const rows = useMemo(() => many.slice(0, size), [size])
  if (!first) return null
  if (size > 0) return <List items={rows} />
  const window: [number, number] = [now - 12 * 3_600_000, now]
  return (
    <main>
      <h1>Gallery</h1>
      <Controls />
      <Piece title="A list">
        <List items={incidents} />
      </Piece>
      <Piece title="The same incidents, by resource">
        <List items={incidents} by="resource" />
      </Piece>
      <Incidents first={first} />
      <Piece title="A night with three hundred incidents">
        <div className="home">
          <Tonight home={night} span="12h" />
          <NightParts home={night} current={null} window={window} />
        </div>
      </Piece>
      <Piece title="A night without incidents">
        <div className="home">
          <Tonight home={emptyNight} span="12h" />
          <NightParts home={emptyNight} current={null} window={window} />
        </div>
      </Piece>
      <Piece title="A new site">
        <FirstSteps sight={firstSight} />
      </Piece>
      <Piece title="A drawer">
        <CloserLook />
      </Piece>
      <Piece title="A row with the longest words">
        <RowLink seq={10_000} />
        <RowDrawer incidentId="inc_1" events={events} quotes={listQuotes(events)} last={10_000} beganMs={now} />
      </Piece>
      <Piece title="Charts with gaps, with six lines and with one line">
        {[6, 1].map((lines) => (
          <Chart
            key={lines}
            title={longTitle}
            source="prometheus"
            series={series.slice(0, lines)}
            reading={reading}
            limit={{ sign: '>', value: 90 }}
            marks={marks}
            fires={lines === 1}
          />
        ))}
      </Piece>
      <Piece title="Empty, loading, failed">
        <Nothing title="No incident fits these filters." />
        <Loading what="the incident" />
        <Failed error={new Error(longTitle)} again={() => {}} />
      </Piece>
    </main>
  )
}

function Controls() {
  return (
    <>
      <Piece title="Signs">
        <p className="row">
          {(['critical', 'warning', 'info'] as const).map((severity) => (
            <SeverityMark key={severity} severity={severity} />
          ))}
          {(Object.keys(statuses) as (keyof typeof statuses)[]).map((status) => (
            <StatusMark key={status} status={status} />
          ))}
          {(['low', 'medium', 'high', 'critical'] as const).map((risk) => (
            <RiskMark key={risk} risk={risk} />
          ))}
        </p>
      </Piece>
      <Piece title="Buttons, fields and filters">
        <div className="row">
          <button type="button">Later…</button>
          <button type="button" className="main">
            Approve…
          </button>
          <Confirm
            button="Take"
            label="it"
            title="Take it"
            refused="Only an operator may take the incident."
            run={async () => {}}
          >
            <p>You own the incident then.</p>
          </Confirm>
          <ChipFilter name="Status" value="open, escalated">
            <Facet legend="Status" options={[['open', 'open']]} chosen={['open']} onToggle={() => {}} />
          </ChipFilter>
          <TextField id="reason" label="Why?" value={longTitle} onChange={() => {}} />
        </div>
      </Piece>
    </>
  )
}

function Incidents({ first }: { first: ListedIncident }) {
  const hour = { brief: brief, incident: first }
  return (
    <>
      <Piece title="An incident that waits for an approval">
        <div className="read">
          <header className="lead">
            <h2>{longTitle}</h2>
            <Glance {...hour} />
          </header>
          <div className="column">
            <DecisionSentence asked={approval} alsoAsked={9} />
            <Answer {...hour} state={null} events={events} />
            <Strip {...hour} events={events} />
          </div>
          <Rail {...hour} surroundings={surroundings} events={events} />
        </div>
      </Piece>
      <Piece title="An incident that is over, with claims by rows, in the agent's words, and not shown">
        <Answer
          incident={{ ...first, status: 'resolved', outcome: 'repaired', closedAt: first.updatedAt }}
          brief={{ ...brief, asked: null, alsoAsked: 0, alert: { state: 'resolved', endedAt: first.updatedAt } }}
          state={null}
          events={events}
        />
      </Piece>
      <Piece title="An incident about which nothing is known">
        <div className="read">
          <div className="column">
            <Glance incident={{ ...first, resource: null, status: 'open' }} brief={unknownBrief} />
            <Answer incident={{ ...first, resource: null }} brief={unknownBrief} state={null} events={[]} />
            <Strip incident={first} brief={unknownBrief} events={[]} />
          </div>
          <Rail incident={first} brief={unknownBrief} surroundings={null} events={[]} />
        </div>
      </Piece>
    </>
  )
}

const nothing = () => {}
const presses = { chosen: new Set<string>(), onChoose: nothing, onLook: nothing, onTurn: nothing, isPart: true }
const columns = columnsAt(now, presses)

function List({ items, by = null }: { items: typeof incidents; by?: GroupedBy | null }) {
  const lines = useMemo(() => toLines(items, by), [items, by])
  const { current } = useCursor<ListLine>(lines, nothing)
  return (
    <Table
      caption="Incidents"
      className="table"
      items={lines}
      columns={columns}
      toKey={({ id, isSetIn }) => (isSetIn ? `in ${id}` : id)}
      toRowProps={(line) => rowProps(line, current)}
    />
  )
}

function CloserLook() {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Look closer
      </button>
      {isOpen && (
        <Drawer title={longTitle} onClose={() => setOpen(false)}>
          <Answer incident={incidents[0] as ListedIncident} brief={brief} state={null} events={events} />
        </Drawer>
      )}
    </>
  )
}

function Piece({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <p className="soft small">{title}</p>
      {children}
    </section>
  )
}

createRoot(document.getElementById('page') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Gallery />
    </QueryClientProvider>
  </StrictMode>,
)
