import { useEffect, useRef, useState } from 'react'
import { formatWithUnit, truncate } from '../../domain/format.ts'
import type { ShownVariable } from '../../domain/setting-row.ts'
import { type ListPage, useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { AddressFacet, SearchField, toOptions } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { Failed, Heading, Loading, Nothing, QueryState, Section } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { navigate, type PageLocation, usePlace, withSearch } from '../router.tsx'
import { formatMoment } from '../time.ts'
import { Destinations } from './destinations.tsx'
import { EditSetting, History } from './edit.tsx'
import { type SettingView, useSettings } from './query.ts'
import { TestModel, TestWebhook } from './tests.tsx'

/**
 * Shows the configuration with which the processes started, read-only, because a change needs a
 * restart.
 */
function Environment({ refused }: { refused: string | null }) {
  const environment = useAsk<ListPage<ShownVariable> & { workerStartedAt: string | null }>(
    ['environment'],
    '/config/environment',
    { enabled: refused === null },
  )
  const items = environment.data?.items ?? []
  const groups = [...new Set(items.map(({ group }) => group))]
  return (
    <Section className="stack tight" id="environment" title="Environment">
      <p className="soft small">
        The variables that the API process and the worker started with. A change needs a restart. Secrets show only
        whether they are set.
        {environment.data &&
          (environment.data.workerStartedAt
            ? ` The worker started ${formatMoment(environment.data.workerStartedAt)}. Where the value of the worker differs, both values are shown.`
            : ' No worker of this release has started yet.')}
      </p>
      {refused ? (
        <p>Only people who may change settings can see these variables.</p>
      ) : (
        <QueryState query={environment} what="the environment" />
      )}
      {groups.map((group) => {
        const own = items.filter((each) => each.group === group)
        const count = own.filter(({ state }) => state === 'set').length
        const others = own.filter(({ worker }) => worker !== null).length
        return (
          <details key={group} className="sheet group">
            <summary>
              <strong>{group}</strong>{' '}
              <span className="soft small">
                {count} of {own.length} set{others > 0 && `, ${others} with another value on the worker`}
              </span>
            </summary>
            <Table caption={`Environment: ${group}`} items={own} columns={columns} toKey={({ name }) => name} />
          </details>
        )
      })}
    </Section>
  )
}

const columns: Column<ShownVariable>[] = [
  {
    head: 'Variable',
    className: 'wraps',
    cell: ({ name, description }) => (
      <>
        <code className="strong">{name}</code>
        <Inert as="div" className="small soft" text={description} />
      </>
    ),
  },
  {
    head: 'In force',
    className: 'wraps',
    cell: (variable) => (
      <>
        <Given {...variable} />
        {variable.worker && (
          <div>
            <span className="soft small">{variable.worker.state === 'default' ? 'worker, default' : 'worker'}</span>{' '}
            <Given {...variable.worker} />
          </div>
        )}
      </>
    ),
  },
  { head: 'From', className: 'nowrap', cell: ({ state }) => froms[state] },
]

function Given({ value, state }: Pick<ShownVariable, 'value' | 'state'>) {
  if (value === null) return state === 'set' ? <strong>set</strong> : <span className="soft">not set</span>
  return <Inert className="mono" text={value} />
}

const froms: Record<ShownVariable['state'], string> = { set: 'environment', default: 'default', not_set: '–' }

/** Lists every setting with its value in force, its source, and how to change it. */
export function ConfigPage({ title }: { title: string }) {
  const place = usePlace()
  const type = place.search.get('type') ?? ''
  const { settings, unknown, config, effective } = useSettings(type)
  const refused = useMissing('write_config')
  const error = config.error ?? effective.error
  const target = settings?.find(({ name }) => place.hash === name || place.hash.startsWith(`${name}.`))?.name
  const field = useRef<HTMLInputElement>(null)
  const isFiltered = place.search.has('q') || place.search.has('section')
  const shown = settings?.filter((setting) => fits(setting, place))
  useEffect(() => {
    if (target) document.getElementById(target)?.scrollIntoView({ block: 'center' })
  }, [target])

  return (
    <>
      <header>
        <Heading title={title} />
        <TypeForm place={place} type={type} />
      </header>
      {refused && <p className="said">{refused} You can read everything here.</p>}
      {error && <Failed error={error} again={() => void Promise.all([config.refetch(), effective.refetch()])} />}
      {!settings && !error && <Loading what="the configuration" />}
      {settings && (
        <search className="filters">
          <SearchField place={place} field={field} label="Search settings" />
          <AddressFacet place={place} name="section" legend="Section" options={toOptions(sectionsOf(settings))} />
        </search>
      )}
      {shown?.length === 0 && <Nothing title="No setting fits." />}
      <div className="stack sections">
        {shown &&
          sectionsOf(shown).map((section) => (
            <section key={section} className="stack tight" aria-labelledby={`section-${section}`}>
              <h2 id={`section-${section}`}>{section}</h2>
              {section === 'Model' && <TestModel />}
              <div className="sheet">
                <ul className="things">
                  {shown
                    .filter((setting) => setting.section === section)
                    .map((setting) => (
                      <SettingRow
                        key={setting.name}
                        setting={setting}
                        refused={refused}
                        isTarget={setting.name === target}
                      />
                    ))}
                </ul>
              </div>
            </section>
          ))}
        {settings && !isFiltered && <Destinations refused={refused} />}
        {settings && !isFiltered && <Environment refused={refused} />}
      </div>
      {unknown.length > 0 && <UnknownKeys keys={unknown.map(({ key }) => key)} />}
    </>
  )
}

function UnknownKeys({ keys }: { keys: readonly string[] }) {
  return (
    <Section className="stack tight" title="Stored keys without a setting">
      <p>These keys have no effect. Is a key mistyped?</p>
      <ul>
        {keys.map((key) => (
          <li key={key}>
            <Inert as="code" text={key} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** Whether the page's text about the setting contains every word of the search. */
function fits({ name, label, description, section }: SettingView, { search }: PageLocation): boolean {
  const text = `${name} ${label} ${description} ${section}`.toLowerCase()
  const words = (search.get('q') ?? '').toLowerCase().split(/\s+/)
  return [null, section].includes(search.get('section')) && words.every((word) => text.includes(word))
}

/** Lists the sections in the order of the API. */
function sectionsOf(settings: SettingView[]): string[] {
  return [...new Set(settings.map(({ section }) => section))]
}

const sources = {
  type: 'set for this type',
  global: 'set here',
  environment: 'from the environment',
  default: 'default',
}

/** Asks for the incident type whose settings are shown, because settings may differ by type. */
function TypeForm({ place, type }: { place: PageLocation; type: string }) {
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault()
        const chosen = new FormData(event.currentTarget).get('type')
        navigate(withSearch(place, { type: typeof chosen === 'string' ? chosen.trim() : null }))
      }}
    >
      <label htmlFor="as-type">Show the values for an incident of this type</label>
      <input
        id="as-type"
        name="type"
        type="text"
        pattern="[a-z0-9_]{1,48}"
        title="Small letters, digits and underscores, 48 at most, as disk_full."
        placeholder="any type"
        defaultValue={type}
        key={type}
      />
      <button type="submit">Show</button>
    </form>
  )
}

type RowProps = { setting: SettingView; refused: string | null; isTarget: boolean }

function SettingRow({ setting, refused, isTarget }: RowProps) {
  const { name, label, unit, description, effective, stored, environment, locked, fallback } = setting
  const [open, setOpen] = useState(isTarget)
  const why = locked ? `The environment variable ${environment} sets this value.` : refused
  const parts = stored.filter(({ key }) => key !== name)
  const own = stored.find(({ key }) => key === name)
  const inForce = effective?.value ?? fallback
  return (
    <li id={name} aria-current={isTarget ? 'true' : undefined}>
      <div className="setting">
        <div>
          <Inert as="strong" text={label} />
          <div>
            <code className="soft small wraps">
              <Inert text={name} />
              {!setting.single && '.…'}
            </code>
          </div>
          <Inert as="p" className="small" text={description} />
        </div>
        <div className="wraps">
          <Value value={inForce} unit={unit} />
          {fallback && effective && effective.source !== 'default' && (
            <p className="soft small">
              default <Value value={fallback} unit={unit} />
            </p>
          )}
          {effective?.problem && <p className="tone-broken small">Ignored: {effective.problem}</p>}
          {parts.map((part) => (
            <p key={part.key} className="small">
              <Inert as="code" text={part.key.slice(name.length + 1)} /> <Value value={part.value} unit={unit} />
              {part.problem && <span className="tone-broken"> no effect: {part.problem}</span>}
            </p>
          ))}
        </div>
        <div className="small">
          {locked ? `locked: ${environment} decides` : sources[effective?.source ?? 'default']}
          {effective?.source === 'environment' && !locked && <span className="soft"> ({environment})</span>}
          {own && (
            <p className="soft">
              {formatMoment(own.updatedAt)} by <Inert text={own.updatedBy.replace(/^user:/, '')} />
            </p>
          )}
        </div>
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Close' : 'Change'}
          <span className="visually-hidden"> {inertText(label)}</span>
        </button>
      </div>
      {open && (
        <div className="two-columns">
          <div className="stack">
            <EditSetting setting={setting} refused={why} />
            {/^webhook\..*\.url$/.test(name) && (
              <TestWebhook setting={name} refused={own ? refused : 'Set an address first.'} />
            )}
          </div>
          <History setting={setting} refused={why} />
        </div>
      )}
    </li>
  )
}

function Value({ value, unit }: { value: unknown; unit: string | null }) {
  if (value === null || value === undefined || value === '') return <span className="soft">not set</span>
  if (unit !== null && (typeof value === 'number' || typeof value === 'string'))
    return <Inert text={formatWithUnit(value, unit)} />
  const text = typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : JSON.stringify(value)
  return <Inert className="mono" text={truncate(text, 120)} />
}
