import { useState } from 'react'
import { formatNumber } from '../../domain/format.ts'
import {
  type PairHistory,
  type PairStanding,
  type TrustCall,
  type TrustLevel,
  type TrustList,
  type TrustPair,
  trustLevels,
  trustWords,
} from '../../domain/trust.ts'
import { describeCall, describeStep, formatInterval } from '../../domain/trust-words.ts'
import { ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { type Column, DataTable, Table } from '../data-table.tsx'
import { Choice, ReasonField, useDraft } from '../fields.tsx'
import { Inert, inertText, TextLink } from '../inert.tsx'
import { Fact, TypeName } from '../marks.tsx'
import { Confirm, Heading, Nothing, QueryState, Section } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { Link } from '../router.tsx'
import { StopKind, Stops } from '../stops.tsx'
import { formatMoment } from '../time.ts'

/** Separates type and tool in the address, because neither name contains this character. */
const between = '~'
const hrefOf = ({ type, tool }: TrustPair) => `/trust/${encodeURIComponent(`${type}${between}${tool}`)}`

const levelTones: Record<TrustLevel, string> = { shadow: 'soft', propose: 'tone-ink', act: 'tone-proved' }

function Level({ level, cause }: Pick<PairStanding, 'level' | 'cause'>) {
  return (
    <>
      <strong className={levelTones[level]}>{level}</strong>
      {cause === 'upgrade' && <span className="soft small"> to confirm</span>}
      {cause === 'lost' && <span className="soft small"> lost</span>}
    </>
  )
}

const number = (
  head: string,
  of: (record: PairStanding['record']) => number,
  className = 'num',
): Column<PairStanding> => ({ head, className, cell: ({ record }) => formatNumber(of(record)) })

const columns: Column<PairStanding>[] = [
  {
    head: 'Tool',
    className: 'wraps',
    cell: (pair) => (
      <>
        <TextLink href={hrefOf(pair)} text={pair.tool} />
        <div className="soft small">
          <TypeName type={pair.type} />
        </div>
      </>
    ),
  },
  { head: 'Level', cell: Level },
  number('Proposed', ({ proposed }) => proposed, 'num wide'),
  number('Approved', ({ approved }) => approved, 'num wide'),
  number('Denied', ({ denied }) => denied, 'num wide'),
  number('Ran', ({ ran }) => ran),
  number('Held', ({ held }) => held, 'num wide'),
  number('Lasted', ({ lasted }) => lasted),
  number('Lost', ({ lost }) => lost),
  number('Wrong', ({ wrong }) => wrong, 'num wide'),
  number('To grade', ({ ungraded }) => ungraded, 'num wide'),
]

/** Shows how far each tool may go without approval, by incident type, and the reason. */
export function TrustPage({ title }: { title: string }) {
  const trust = useAsk<TrustList & ListPage<PairStanding>>(['trust'], '/trust')
  return (
    <>
      <Heading title={title} />
      <Stops />
      <DataTable
        query={trust}
        what="trust"
        caption="Tools that write, by type of incident"
        columns={columns}
        toKey={({ type, tool }) => `${type} ${tool}`}
        above={
          <p className="soft small wraps">
            Every other pair: {trust.data?.newPairs}, {trust.data && trustWords[trust.data.newPairs]}. A level can only
            restrict: it never allows a call that is refused or needs approval.
          </p>
        }
        empty={
          <Nothing title="The agent has proposed no write yet.">This page will count each proposed write.</Nothing>
        }
      />
    </>
  )
}

export function TrustPairPage({ id }: { id: string }) {
  const [type = '', tool = ''] = decodeURIComponent(id).split(between)
  const path = `/trust/${encodeURIComponent(type)}/${encodeURIComponent(tool)}`
  const pair = useAsk<PairHistory>(['trust', type, tool], path)
  return (
    <>
      <Heading title={inertText(`${tool} in ${type}`)} of={{ href: '/trust', title: 'Trust' }} />
      <QueryState query={pair} what="the pair" />
      {pair.data && <Pair pair={pair.data} path={path} />}
    </>
  )
}

function Pair({ pair, path }: { pair: PairHistory; path: string }) {
  const { level, cause, record, risk, steps, calls, weeks } = pair
  return (
    <article className="about stack">
      <Stops />
      <p className="wraps">
        <Level level={level} cause={cause} />: {trustWords[level]}.
        {cause === 'upgrade' &&
          ' An older version ran this tool without asking. To confirm that level, set act once more.'}
      </p>
      <dl className="facts">
        <Fact name="Proposed">{formatNumber(record.proposed)}</Fact>
        <Fact name="Approved">{formatNumber(record.approved)}</Fact>
        <Fact name="Denied">{formatNumber(record.denied)}</Fact>
        <Fact name="Ran">{formatNumber(record.ran)}</Fact>
        <Fact name="Held">{formatNumber(record.held)}</Fact>
        <Fact name="Lasted">{formatNumber(record.lasted)}</Fact>
        <Fact name="Failed, or came back">{formatNumber(record.lost)}</Fact>
        <Fact name="In shadow, to grade">
          {formatNumber(record.shadowed)}, {formatNumber(record.ungraded)}
        </Fact>
        <Fact name="Graded right, wrong">
          {formatNumber(record.right)}, {formatNumber(record.wrong)}
        </Fact>
        <Fact name="Risk">{risk}</Fact>
      </dl>
      <div className="tools">
        <SetLevel pair={pair} path={path} />
        <StopKind type={pair.type} tools={[pair.tool]} />
      </div>
      {steps.length > 0 && (
        <Section className="stack tight" id="steps-title" title="Who set it">
          <ul className="stack tight">
            {steps.map((step) => (
              <li key={step.at} className="wraps">
                <span className="soft">{formatMoment(step.at)}</span> <Inert text={describeStep(step)} />
                {step.incidentId && (
                  <>
                    {' '}
                    <Link href={`/incidents/${step.incidentId}`}>what happened</Link>
                  </>
                )}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {weeks.length > 0 && <Weeks weeks={weeks} />}
      <Section className="stack tight" id="calls-title" title="Newest calls">
        <Table
          items={calls}
          caption="Newest calls"
          columns={callColumns}
          toKey={({ incidentId, attempt, callId }) => `${incidentId} ${attempt} ${callId}`}
          none="The agent never proposed this write."
        />
      </Section>
    </article>
  )
}

const callColumns: Column<TrustCall>[] = [
  {
    head: 'When',
    cell: ({ at, incidentId, seq }) => <Link href={`/incidents/${incidentId}#e-${seq}`}>{formatMoment(at)}</Link>,
  },
  { head: 'Result', className: 'wraps', cell: describeCall },
]

function Weeks({ weeks }: Pick<PairHistory, 'weeks'>) {
  return (
    <Section className="stack tight" id="weeks-title" title="Grades by people">
      <Table<PairHistory['weeks'][number]>
        items={weeks}
        caption="Grades by people, by week"
        columns={[
          { head: 'Week of', cell: ({ week }) => week },
          { head: 'Right', className: 'num', cell: ({ right, wrong }) => `${right} of ${right + wrong}` },
          { head: 'With 95 %', className: 'num', cell: (week) => formatInterval(week) },
        ]}
        toKey={({ week }) => week}
      />
    </Section>
  )
}

/**
 * Sets the level of a pair. The record is shown above the button, and is sent back as the person
 * saw it.
 */
function SetLevel({ pair, path }: { pair: PairHistory; path: string }) {
  const refused = useMissing('decide')
  const [to, setTo] = useState<TrustLevel>(pair.level)
  const [reason, setReason] = useDraft(`level of ${pair.type} ${pair.tool}`)
  const run = async () => {
    await ask(path, { method: 'POST', body: { to, reason: reason.trim(), seen: pair.seen } })
    setReason('')
  }
  return (
    <Confirm
      button="Set the level"
      label="of this pair"
      title={`What may ${inertText(pair.tool)} do by itself in ${inertText(pair.type)}?`}
      refused={refused}
      run={() => run().finally(() => void readAgain(['trust']))}
    >
      <Choice
        name="level"
        legend="Level"
        options={trustLevels.map((each) => [each, `${each}: ${trustWords[each]}`] as const)}
        value={to}
        onChange={setTo}
      />
      <ReasonField id="trust-reason" label="Reason (recorded in the audit log)" value={reason} onChange={setReason} />
    </Confirm>
  )
}
