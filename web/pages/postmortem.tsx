import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatNumber } from '../../domain/format.ts'
import type { Postmortem, PostmortemSection } from '../../domain/postmortem.ts'
import { ApiRefusal, ask, type ListPage, queryClient, readAgain, useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { TextArea, useDraft } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { useLive } from '../live.tsx'
import { Markdown } from '../markdown.tsx'
import { Failed, Heading, PageForm, QueryState, Section } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { Link } from '../router.tsx'
import { formatBothZones, formatMoment } from '../time.ts'

type ShownSection = Postmortem['sections'][number]
const keyOf = (id: string) => ['postmortem', id]
const pathOf = (id: string) => `/incidents/${encodeURIComponent(id)}/postmortem`

/**
 * Shows the outcome of an incident, made from its rows, with texts of people beside it and the log
 * as its appendix.
 */
export function PostmortemPage({ id }: { id: string }) {
  const found = useAsk<Postmortem>(keyOf(id), pathOf(id))
  useLive((event) => void (event.incidentId === id && readAgain(keyOf(id))))
  return (
    <article className="stack postmortem">
      <header className="incident-head">
        <Heading
          title={found.data ? `Postmortem: ${inertText(found.data.title)}` : 'Postmortem'}
          of={{ href: `/incidents/${id}`, title: 'Incident' }}
        >
          Postmortem
          {found.data && (
            <>
              : <Inert text={found.data.title} />
            </>
          )}
        </Heading>
        <div className="row">
          <Link href={`/incidents/${id}`}>The incident</Link>
          <a href={`/api/v1/incidents/${encodeURIComponent(id)}/export?format=md`} download>
            Download Markdown
          </a>
        </div>
      </header>
      <QueryState query={found} what="the postmortem" />
      {found.data && (
        <>
          <p className="soft small">
            Code makes every sentence below from the {formatNumber(found.data.rows)} rows of the log. Each sentence
            names its rows. What people write appears beside these sentences, with the names of the authors, and changes
            no row.
          </p>
          {found.data.sections.map((each) => (
            <SectionOf key={each.section} section={each} found={found.data} />
          ))}
          <Timeline found={found.data} />
          <Appendix found={found.data} />
        </>
      )}
    </article>
  )
}

function SectionOf({ section, found }: { section: ShownSection; found: Postmortem }) {
  const [isEdited, setEdited] = useState(false)
  const refused = useMissing('record')
  const { title, edited, sentences } = section
  const heading = `${section.section}-title`
  return (
    <section className="stack tight" aria-labelledby={heading}>
      <div className="row between">
        <h2 id={heading}>{title}</h2>
        {!isEdited && (
          <button
            type="button"
            className="bare"
            disabled={refused !== null}
            title={refused ?? undefined}
            onClick={() => setEdited(true)}
          >
            Edit<span className="visually-hidden"> {title}</span>
          </button>
        )}
      </div>
      {edited === null ? (
        <Sentences sentences={sentences} incidentId={found.incidentId} />
      ) : (
        <>
          <div className="written-by stack tight">
            <Markdown text={edited.text} />
            <p className="soft small">
              Edited by <Inert text={edited.by} /> at{' '}
              <time title={formatBothZones(edited.at)}>{formatMoment(edited.at)}</time>
            </p>
          </div>
          {sentences.length > 0 && (
            <details>
              <summary>Text generated from the rows</summary>
              <Sentences sentences={sentences} incidentId={found.incidentId} />
            </details>
          )}
        </>
      )}
      {isEdited && <EditForm section={section} found={found} close={() => setEdited(false)} />}
    </section>
  )
}

/** Shows sentences with links to their rows. The sentences of an attempt are below its name. */
function Sentences({ sentences, incidentId }: { sentences: ShownSection['sentences']; incidentId: string }) {
  if (sentences.length === 0) return <p className="soft">Nobody has edited this.</p>
  const groups = Map.groupBy(sentences, ({ attempt }) => attempt)
  return [...groups].map(([attempt, own]) => (
    <div key={attempt ?? 'all'} className="stack tight">
      {attempt !== null && <h3>{attempt === 0 ? 'Before the first attempt' : `Attempt ${attempt}`}</h3>}
      <ul className="claims">
        {own.map(({ text, rows }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two rows may say the same
          <li key={at} className="wraps">
            <Inert text={text} />{' '}
            {rows.map((seq) => (
              <RowLink key={seq} seq={seq} incidentId={incidentId} />
            ))}
          </li>
        ))}
      </ul>
    </div>
  ))
}

function RowLink({ seq, incidentId }: { seq: number; incidentId: string }) {
  return (
    <Link className="soft small" href={`/incidents/${incidentId}#e-${seq}`}>
      #{seq}{' '}
    </Link>
  )
}

type EditProps = { section: ShownSection; found: Postmortem; close(): void }

/**
 * Keeps the text after a reload, and after another person saved first: the newer text is then shown
 * above, and the next press overwrites it.
 */
function EditForm({
  section: { section, title, text: now, sentences, edited },
  found: { incidentId, version },
  close,
}: EditProps) {
  const [draft, setDraft] = useDraft(`postmortem ${section} on ${incidentId}`)
  const [isTouched, setTouched] = useState(draft !== '')
  // Does not start from the sentence that is shown if there are no rows.
  const start = edited || sentences.some(({ rows }) => rows.length > 0) ? now : ''
  const text = isTouched ? draft : start
  const write = useMutation({
    mutationFn: (said: string | null) =>
      ask<Postmortem>(pathOf(incidentId), {
        method: 'POST',
        body: { version, sections: { [section]: said } satisfies Partial<Record<PostmortemSection, string | null>> },
      }),
    onSuccess: (next) => {
      setDraft('')
      queryClient.setQueryData(keyOf(incidentId), next)
      close()
    },
    onError: (error) => {
      if (error instanceof ApiRefusal && error.status === 409) void readAgain(keyOf(incidentId))
    },
  })
  return (
    <PageForm className="note stack" onSubmit={() => write.mutate(text.trim())}>
      <TextArea
        id={`edit-${section}`}
        label={`${title}, in Markdown`}
        rows={Math.min(16, Math.max(4, text.split('\n').length + 1))}
        required
        autoFocus
        maxLength={10_000}
        value={text}
        onChange={(next) => {
          setTouched(true)
          setDraft(next)
        }}
      />
      {write.error !== null && <Failed error={write.error} />}
      <div className="row">
        <button type="submit" disabled={write.isPending || text.trim() === ''}>
          Save under your name
        </button>
        <button
          type="button"
          onClick={() => {
            setDraft('')
            close()
          }}
        >
          Cancel
        </button>
        {edited && (
          <button type="button" disabled={write.isPending} onClick={() => write.mutate(null)}>
            Restore the generated text
          </button>
        )}
      </div>
    </PageForm>
  )
}

type Moment = Postmortem['timeline'][number]

/** Returns `the agent`, the name of a person, or the actor of the row. */
const nameOf = (actor: string) =>
  actor.startsWith('agent:') ? 'the agent' : actor.replace(/^(user|system|source):/, '')

function timeColumns(incidentId: string): Column<Moment>[] {
  return [
    {
      head: 'Time',
      className: 'nowrap small',
      cell: ({ at }) => <time title={formatBothZones(at)}>{formatMoment(at)}</time>,
    },
    { head: 'Row', className: 'num', cell: ({ seq }) => <RowLink seq={seq} incidentId={incidentId} /> },
    { head: 'Who', className: 'wide', cell: ({ actor }) => <Inert text={nameOf(actor)} /> },
    { head: 'What', className: 'wraps', cell: ({ text }) => <Inert text={text} /> },
  ]
}

function Timeline({ found: { timeline, left, incidentId } }: { found: Postmortem }) {
  return (
    <Section className="stack tight" id="times-title" title="Timeline">
      <div className="sheet">
        <Table
          caption="Rows that matter most, oldest first"
          none="There is no row yet."
          items={timeline}
          columns={timeColumns(incidentId)}
          toKey={({ seq }) => String(seq)}
        />
      </div>
      {left > 0 && <p className="soft small">{formatNumber(left)} more are in the log.</p>}
    </Section>
  )
}

const maxRows = 1_000

/** Shows the log itself, which is read when it is opened. */
function Appendix({ found: { incidentId, rows } }: { found: Postmortem }) {
  const [isOpen, setOpen] = useState(false)
  const log = useAsk<ListPage<IncidentEvent>>(
    ['postmortem-log', incidentId],
    `/incidents/${encodeURIComponent(incidentId)}/events?limit=${maxRows}`,
    { enabled: isOpen },
  )
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Appendix: the log, {formatNumber(rows)} rows</summary>
      {isOpen && <QueryState query={log} what="the log" />}
      {log.data && (
        <div className="sheet">
          <Table
            caption="The log, oldest first"
            items={log.data.items.map(({ seq, at, actor, detail }) => ({ seq, at, actor, text: detail }))}
            columns={timeColumns(incidentId)}
            toKey={({ seq }) => String(seq)}
          />
        </div>
      )}
      {rows > maxRows && (
        <p className="soft small">
          The first {formatNumber(maxRows)} rows. <Link href={`/incidents/${incidentId}`}>The incident</Link> has all
          rows.
        </p>
      )}
    </details>
  )
}
