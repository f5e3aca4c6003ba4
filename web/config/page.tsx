import { useEffect } from 'react'
import { Heading } from '../heading.tsx'
import { Inert } from '../inert.tsx'
import { go, usePlace, withSearch } from '../router.tsx'
import { missing, useSession } from '../session.ts'
import { Failed, Loading } from '../states.tsx'
import { useSettings } from './query.ts'
import { SettingRow } from './setting-row.tsx'

/** Every setting as it is in force, where that comes from, and how to change it. */
export function ConfigPage() {
  const place = usePlace()
  const { data: session } = useSession()
  const type = place.search.get('type') ?? ''
  const { settings, unknown, config, effective } = useSettings(type)
  const refused = missing(session, 'write_config')
  const error = config.error ?? effective.error
  const target = settings?.find(({ name }) => place.hash === name || place.hash.startsWith(`${name}.`))?.name
  useEffect(() => {
    if (target) document.getElementById(target)?.scrollIntoView({ block: 'center' })
  }, [target])

  return (
    <>
      <header>
        <Heading title="Configuration" />
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault()
            const chosen = new FormData(event.currentTarget).get('type')
            go(withSearch(place, { type: typeof chosen === 'string' ? chosen.trim() : null }))
          }}
        >
          <label htmlFor="as-type">As an incident of this type reads it</label>
          <input
            id="as-type"
            name="type"
            type="text"
            pattern="[a-z0-9_]{1,48}"
            placeholder="any type"
            defaultValue={type}
            key={type}
          />
          <button type="submit">Show</button>
        </form>
      </header>
      {refused && <p className="said">{refused} You can read everything here.</p>}
      {error && <Failed error={error} again={() => void Promise.all([config.refetch(), effective.refetch()])} />}
      {!settings && !error && <Loading what="the configuration" />}
      {settings && (
        <div className="sheet">
          <ul className="things">
            {settings.map((setting) => (
              <SettingRow key={setting.name} setting={setting} refused={refused} isTarget={setting.name === target} />
            ))}
          </ul>
        </div>
      )}
      {unknown.length > 0 && (
        <section className="stack tight">
          <h2>Stored, but unknown</h2>
          <p>No setting has these keys: they have no effect. A typing mistake?</p>
          <ul>
            {unknown.map(({ key }) => (
              <li key={key}>
                <code>
                  <Inert text={key} />
                </code>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}
