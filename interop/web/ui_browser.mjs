// Uses the page of ui_app.jsx in Chromium, as a person would.
//
//	node ui_browser.mjs PAGE IBID CHROMIUM
import assert from 'node:assert/strict'
import { chromium } from 'playwright-core'

const [page_, ibid, executablePath] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage()
  const wrong = []
  page.on('pageerror', e => wrong.push(String(e)))
  page.on('console', m => { if (m.type() === 'error' && !m.text().includes('404')) wrong.push(m.text()) })
  const open = (provider, chat = 'react-1') =>
    page.goto(`${page_}/?ibid=${encodeURIComponent(ibid)}&chat=${chat}&provider=${provider}`)
  const ask = async words => {
    await page.fill('input', words)
    await page.press('input', 'Enter')
  }
  const ready = () => page.waitForSelector('main[data-status=ready]')

  await open('slow')
  await ask('How many herons nest at Lake Tonbo?')
  await page.waitForSelector('.assistant .text')
  const lengths = new Set()
  while (await page.getAttribute('main', 'data-status') === 'streaming') {
    lengths.add((await page.textContent('.assistant .text')).length)
    await page.waitForTimeout(30)
  }
  assert.ok(lengths.size > 5, `the text came at once: ${[...lengths]}`)
  await ready()
  console.log(`text streams in: ${lengths.size} lengths seen`)

  const seen = async () => ({
    id: await page.getAttribute('.assistant', 'id'),
    texts: await page.locator('.assistant .text').allTextContents(),
    chips: await page.locator('.assistant .chip').allTextContents(),
    sources: await page.locator('.assistant .source').allTextContents(),
    citations: await page.locator('.assistant .citations').allTextContents(),
    status: await page.getAttribute('.assistant .citations', 'data-status'),
  })
  const before = await seen()
  assert.match(before.id, /^ans_/)
  assert.equal(before.status, 'final')
  assert.equal(before.sources.length, 3)
  assert.ok(before.chips.length >= 3, String(before.chips))
  console.log(`citations arrive: ${before.citations}, chips ${before.chips.join('')}`)

  await page.reload()
  await page.waitForSelector('.assistant .text')
  assert.deepEqual(await seen(), before)
  console.log('a reload shows the same')

  await open('gemini')
  await ask('アオサギは何羽いますか？🪿')
  await page.waitForSelector('.assistant:nth-of-type(4) .chip')
  await ready()
  const pieces = await page.locator('.assistant:nth-of-type(4) .text').first().textContent()
  assert.match(pieces, /四十一あります。\[\d\]最初の/)
  console.log(`beyond ASCII: ${pieces}`)

  await open('late')
  await ask('How many herons nest at Lake Tonbo? From memory unless you can search.')
  await page.waitForSelector('.assistant:nth-of-type(6) .citations[data-status=final]')
  assert.notEqual(await page.textContent('.assistant:nth-of-type(6) .citations'), '0')
  console.log('late citations arrive')

  await open('slow', 'react-2')
  await ask('How many herons nest at Lake Tonbo?')
  await page.waitForFunction(() => document.querySelector('.assistant .text')?.textContent.length > 30)
  await page.reload()
  await page.waitForFunction(() => document.querySelector('.assistant .text')?.textContent.length > 30)
  assert.equal(await page.getAttribute('main', 'data-status'), 'streaming')
  await page.waitForSelector('.assistant .citations[data-status=final]')
  await ready()
  assert.deepEqual({ ...await seen(), id: '' }, { ...before, id: '', chips: ['[1]', '[2]', '[1]', '[3]'] })
  console.log('a reload while the answer arrives goes on with it')

  await page.goto(`${page_}/plain`)
  await ask('How many herons nest at Lake Tonbo?')
  await page.waitForSelector('#sources li')
  assert.equal(await page.locator('#sources li').count(), 3)
  assert.match(await page.textContent('#text'), /41 nests this year\..*\[1\].*\[3\] Nobody knows/)
  console.log('the page of docs/chat.md works')

  assert.deepEqual(wrong, [])
} finally {
  await browser.close()
}
