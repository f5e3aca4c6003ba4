export function Brand() {
  return (
    <a className="brand" href="/incidents">
      <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#171b2a" stroke="#66708a" strokeWidth="1" />
        <path d="M21.5 20.8A9 9 0 0 1 12.2 7.4a9.6 9.6 0 1 0 11.9 12.2 9 9 0 0 1-2.6 1.2z" fill="#f2b95c" />
      </svg>
      Nightshift
    </a>
  )
}
