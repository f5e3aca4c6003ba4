import { keepPreviousData } from '@tanstack/react-query'
import { useState } from 'react'
import type { AuditRow } from '../../domain/audit.ts'
import { withSpaces } from '../../domain/format.ts'
import { type ListPage, useAsk } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { SelectField } from '../fields.tsx'
import { Inert, inertText, TextLink } from '../inert.tsx'
import { useLive } from '../live.tsx'
import { Heading, Nothing } from '../page-frame.tsx'
import { Link, navigate, type PageLocation, pickSearch, usePlace, withSearch } from '../router.tsx'
import { formatMoment } from '../time.ts'
import { VerifyAll } from '../verify.tsx'

/** Lists audited actions and who made them, by time. */
export function AuditPage({ title }: { title: string }) {
  const place = usePlace()
  return (
    <>
      <Heading title={title} />
      <Filters place={place} />
      <AuditTable place={place} />
      <VerifyAll />
    </>
  )
}

function AuditTable({ place }: { place: PageLocation }) {
  const { audit, isOld, again } = useAudit(place)
  const isFiltered = ['who', 'what', 'since'].some((name) => place.search.has(name))
  return (
    <DataTable
      query={audit}
      what="the audit"
      again={again}
      place={place}
      bar={
        <div role="status">
          {isOld && !place.search.has('cursor') && (
            <button type="button" className="bar" onClick={again}>
              Show new entries
            </button>
          )}
        </div>
      }
      caption="Who did what, newest first"
      columns={columnsAt(place)}
      toKey={({ id }) => id}
      empty={
        <Nothing title={isFiltered ? 'Nothing fits these filters.' : 'Nobody has done anything yet.'}>
          {isFiltered && <Link href="/audit">Show all</Link>}
        </Nothing>
      }
    />
  )
}

/** Reads a page of the audit log, and whether newer entries exist. */
function useAudit(place: PageLocation) {
  const since = place.search.get('since')
  const search = pickSearch(place, ['who', 'what', 'cursor'], {
    limit: '50',
    ...(since && { since: `${since}T00:00:00Z` }),
  })
  const audit = useAsk<ListPage<AuditRow>>(['audit', search], `/audit?${search}`, { placeholderData: keepPreviousData })
  const [isOld, setIsOld] = useState(false)
  useLive(({ actor, kind }) => {
    if (actor.startsWith('user:') || kind === 'security_event') setIsOld(true)
  })
  const again = () => {
    setIsOld(false)
    void audit.refetch()
  }
  return { audit, isOld, again }
}

/** Lists choices from recent entries. An address may name others, which stay selected. */
function Filters({ place }: { place: PageLocation }) {
  const { data } = useAsk<{ who: string[]; what: string[] }>(['audit-choices'], '/audit/choices')
  const [who, what, since] = ['who', 'what', 'since'].map((name) => place.search.get(name) ?? '') as [
    string,
    string,
    string,
  ]
  const choose = (change: Record<string, string | null>) => navigate(withSearch(place, { ...change, cursor: null }))
  const kinds = [...new Set((data?.what ?? []).map((word) => word.replace(/\..*/, '')))]
  return (
    <search className="filters">
      <SelectField
        label="Who"
        value={who}
        options={toChoices('everybody', data?.who ?? [], who, inertText)}
        onChange={(next) => choose({ who: next || null })}
      />
      <SelectField
        label="What"
        value={what}
        options={toChoices('anything', [...kinds, ...(data?.what ?? [])], what, describeWhat)}
        onChange={(next) => choose({ what: next || null })}
      />
      <label className="row">
        Since
        <input type="date" value={since} onChange={(event) => choose({ since: event.target.value || null })} />
      </label>
    </search>
  )
}

/** Describes an action. The first part alone means all actions that begin with it. */
function describeWhat(word: string): string {
  const [kind = '', rest] = word.split('.')
  return rest ? `${withSpaces(kind)}: ${withSpaces(rest)}` : `${withSpaces(kind)}: all`
}

function toChoices(all: string, words: string[], chosen: string, describe: (word: string) => string) {
  const known = [...new Set(chosen && !words.includes(chosen) ? [...words, chosen] : words)].toSorted()
  return [['', all] as const, ...known.map((word) => [word, describe(word)] as const)]
}

function columnsAt(place: PageLocation): Column<AuditRow>[] {
  return [
    { head: 'When', className: 'wide nowrap', cell: ({ at }) => formatMoment(at) },
    {
      head: 'Who',
      className: 'name wraps',
      cell: ({ who, address }) => (
        <>
          <TextLink href={withSearch(place, { who, cursor: null })} text={who} />
          {address && <div className="small soft mono nowrap">{inertText(address)}</div>}
        </>
      ),
    },
    {
      head: 'What',
      className: 'wraps',
      cell: (entry) => (
        <>
          <div className="row">
            <code className={entry.what.startsWith('security') ? 'tone-broken strong' : 'strong'}>{entry.what}</code>
            <Subject entry={entry} />
          </div>
          <Inert text={entry.detail} />
          <div className="under small soft">{formatMoment(entry.at)}</div>
        </>
      ),
    },
  ]
}

/** Shows the subject of an action, as a link if it has a page. */
function Subject({ entry: { what, subject, incidentId } }: { entry: AuditRow }) {
  const href = subject.startsWith('apr_')
    ? `/approvals/${encodeURIComponent(subject)}`
    : incidentId
      ? `/incidents/${incidentId}`
      : what.startsWith('config.')
        ? `/config#${subject}`
        : null
  const text = <Inert text={subject} />
  return (
    <span className="small mono wraps">
      {href ? <Link href={href}>{text}</Link> : <span className="soft">{text}</span>}
    </span>
  )
}
