import { useMutation } from '@tanstack/react-query'
import { Search } from 'lucide-react'
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useRef, useState } from 'react'
import { truncate } from '../domain/format.ts'
import type { Incident } from '../domain/incident.ts'
import type { SearchAnswer } from '../domain/incident-detail.ts'
import { withAlertName } from '../domain/status-words.ts'
import { idIn, pathOfId } from '../domain/step-key.ts'
import { ask, useAsk } from './api.ts'
import { useSettings } from './config/query.ts'
import { useDraft } from './fields.tsx'
import { Inert } from './inert.tsx'
import { StatusMark } from './marks.tsx'
import { Failed } from './page-frame.tsx'
import { missing } from './permissions.ts'
import { navigate } from './router.tsx'
import { routes } from './routes.tsx'
import type { BrowserSession } from './session.ts'
import { formatMoment } from './time.ts'

/**
 * A search result: its kind, text and address. Without an address it is a question to the agent.
 */
type Target = {
  kind: string
  href: string | null
  text: string
  hint: string
  status?: SearchAnswer['incidents'][number]['status']
}

const isMac = /mac|iphone|ipad/i.test(navigator.userAgent)

/**
 * Searches everything: ids, incidents, resources, rows of the log, settings, pages. Can also send a
 * question to the agent, which opens a separate incident. A button, ⌘K and Ctrl+K open the search.
 */
export function Palette({ session }: { session: BrowserSession }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const open = () => {
    if (document.querySelector('dialog:modal')) return
    setOpen(true)
    dialog.current?.showModal()
  }
  const newest = useRef(open)
  useEffect(() => {
    newest.current = open
  })
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(isMac ? event.metaKey : event.ctrlKey) || event.altKey || event.shiftKey)
        return
      event.preventDefault()
      if (dialog.current?.open) return dialog.current.close()
      newest.current()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return (
    <>
      <button type="button" className="jump" onClick={open} aria-haspopup="dialog">
        <Search aria-hidden="true" />
        <span>Search, or ask: which host runs vm-104?</span> <kbd>{isMac ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      <dialog ref={dialog} className="palette" aria-label="Search or ask" onClose={() => setOpen(false)}>
        {isOpen && <Jump session={session} leave={() => dialog.current?.close()} />}
      </dialog>
    </>
  )
}

function Jump({ session, leave }: { session: BrowserSession; leave(): void }) {
  const [text, setText] = useDraft('question')
  const [at, setAt] = useState(0)
  const list = useId()
  const input = useRef<HTMLInputElement>(null)
  const found = useTargets(useDeferredValue(text.trim()))
  const asking = useAgent(() => {
    setText('')
    leave()
  })
  const targets = withQuestion(found.targets, text.trim(), missing(session, 'manage_incident') === null)
  useEffect(() => input.current?.focus(), [])
  const chosen = Math.min(at, targets.length - 1)
  const follow = (target: Target | undefined) => {
    if (!target || asking.isPending) return
    if (target.href === null) return asking.mutate(target.text)
    setText('')
    leave()
    navigate(target.href)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }
    const by = moves[event.key]
    if (by !== undefined) {
      event.preventDefault()
      const next = Math.min(targets.length - 1, Math.max(0, chosen + by))
      setAt(next)
      document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: 'nearest' })
    }
    if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault()
      follow(targets[chosen])
    }
  }
  return (
    <>
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label="Search incidents, resources, the log, settings and pages, or ask the agent"
        aria-expanded={targets.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={targets.length > 0 ? `${list}-${chosen}` : undefined}
        autoComplete="off"
        spellCheck={false}
        maxLength={2000}
        placeholder="An id, a resource, an alert or its label, words of the log, a page; or a question to the agent"
        value={text}
        onChange={({ target }) => {
          setText(target.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
      />
      <Options list={list} targets={targets} chosen={chosen} onPoint={setAt} onFollow={follow} />
      <p className="small soft note" role="status">
        {describeSearch(text.trim(), found.targets.length, found.isSearching)}
        {found.isPartial && ' Too many rows of the log have these words. Add another word.'}
        {found.error && ` The search failed: ${found.error}`}
      </p>
      {asking.error !== null && <Failed error={asking.error} />}
    </>
  )
}

/**
 * Opens a separate incident for a question. The answer is in the log, with the rows on which it is
 * based.
 */
function useAgent(leave: () => void) {
  return useMutation({
    mutationFn: (question: string) => ask<Incident>('/agent', { method: 'POST', body: { question } }),
    onSuccess: ({ id }) => {
      leave()
      navigate(`/incidents/${id}`)
    },
  })
}

const minQuestion = 3

/** Adds the question as the last result, or as the first if the text ends with a question mark. */
function withQuestion(found: Target[], text: string, isAllowed: boolean): Target[] {
  if (!isAllowed || text.length < minQuestion || idIn(text) !== null) return found
  const question = { kind: 'ask', href: null, text, hint: 'Ask the agent' }
  return text.endsWith('?') ? [question, ...found] : [...found, question]
}

type OptionsProps = {
  /** The id of the list, which the field refers to. */
  list: string
  targets: Target[]
  chosen: number
  onPoint(index: number): void
  onFollow(target: Target): void
}

function Options({ list, targets, chosen, onPoint, onFollow }: OptionsProps) {
  return (
    <div id={list} role="listbox" aria-label="Found" tabIndex={-1}>
      {targets.map((target, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: keys go through the field, which names the chosen option
        <div
          key={`${target.kind} ${target.href}`}
          id={`${list}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === chosen}
          onClick={() => onFollow(target)}
          onMouseMove={() => onPoint(index)}
        >
          <span className="kind small soft">{target.kind}</span>
          <span className="wraps">
            <Inert text={target.text} />
            {target.hint && (
              <span className="small soft">
                {' '}
                <Inert text={target.hint} />
              </span>
            )}
          </span>
          {target.status && <StatusMark status={target.status} />}
        </div>
      ))}
    </div>
  )
}

function describeSearch(text: string, found: number, isSearching: boolean): string {
  if (isSearching) return 'Searching…'
  if (found === 0) return `Nothing found for "${truncate(text, 60)}".`
  return `${found} found. Arrows choose, Enter opens, Escape closes.`
}

function useTargets(text: string) {
  const { settings } = useSettings('')
  const search = useAsk<SearchAnswer>(['search', text], `/search?q=${encodeURIComponent(text.slice(0, maxSearch))}`, {
    enabled: text !== '' && idIn(text) === null,
    staleTime: 10_000,
  })
  const id = idIn(text)
  const targets = [
    ...(id ? [{ kind: 'id', href: pathOfId(id), text: id, hint: '' }] : []),
    ...listPages(text),
    ...(search.data ? listFound(search.data) : []),
    ...(settings ?? [])
      .filter(({ name, description }) => fits(text, `${name} ${description}`) && text.length > 1)
      .slice(0, 6)
      .map(({ name, description }) => ({
        kind: 'setting',
        href: `/config#${name}`,
        text: name,
        hint: truncate(description, 90),
      })),
  ]
  return {
    targets,
    isPartial: search.data?.isPartial ?? false,
    isSearching: search.isFetching,
    error: search.error?.message ?? null,
  }
}

const maxSearch = 200

/** Whether every word of a text occurs in `words`. */
function fits(text: string, words: string): boolean {
  const lower = words.toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word))
}

function listPages(text: string): Target[] {
  return routes
    .filter(({ title, path }) => fits(text, `${title} ${path}`))
    .map(({ title, path }) => ({ kind: 'page', href: path, text: title, hint: '' }))
}

function listFound({ incidents, resources, log }: SearchAnswer): Target[] {
  return [
    ...incidents.map(({ id, title, alertName, resource, status, createdAt }) => ({
      kind: 'incident',
      href: `/incidents/${id}`,
      text: withAlertName(truncate(title, 120), alertName),
      status,
      hint: [resource?.id, formatMoment(createdAt)].filter(Boolean).join(' · '),
    })),
    ...resources.map(({ kind, id }) => ({
      kind,
      href: `/resources/${encodeURIComponent(`${kind}:${id}`)}`,
      text: id,
      hint: '',
    })),
    ...log.map(({ incidentId, title, seq, detail, at }) => ({
      kind: 'log',
      href: `/incidents/${incidentId}#e-${seq}`,
      text: truncate(detail, 140),
      hint: `${truncate(title, 60)} · ${formatMoment(at)}`,
    })),
  ]
}
