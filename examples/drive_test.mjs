// Opens a page in Chromium, submits a question in its only field, waits for an element, and prints the visible text.
//
//	node drive_test.mjs MODULES CHROMIUM PAGE QUESTION SELECTOR
//
// MODULES is a node_modules with playwright-core. An error in the page makes it exit with 1.
import { createRequire } from 'node:module'

const [modules, executablePath, address, question, selector] = process.argv.slice(2)
const { chromium } = createRequire(modules + '/')('playwright-core')
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage()
  page.on('pageerror', e => { console.error(e); process.exitCode = 1 })
  page.on('console', m => { if (m.type() === 'error' && !m.text().includes('favicon')) console.error(m.text(), m.location().url) })
  await page.goto(address)
  await page.fill('input', question)
  await page.press('input', 'Enter')
  await page.waitForSelector(selector, { timeout: 20_000 })
  console.log(await page.evaluate(() => document.body.innerText))
} finally {
  await browser.close()
}
