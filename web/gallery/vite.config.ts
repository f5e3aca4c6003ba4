import { defineConfig } from 'vite'
import pages from '../vite.config.ts'

/**
 * Builds the components on one page, in the same way as the pages, for a browser test. The page is
 * not shipped.
 */
export default defineConfig({
  ...pages,
  root: import.meta.dirname,
  build: {
    ...pages.build,
    rolldownOptions: { ...pages.build?.rolldownOptions, input: `${import.meta.dirname}/gallery.html` },
  },
})
